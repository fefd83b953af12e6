"""Rows whose choice of experts hangs on less than rounding."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from tests.helpers.checkpoints.variants import reference_logits

ROUTERS_OF_LOGITS = "TopKRouter"
ROUTERS_OF_SHARES = "TextRouter"


def decided_rows(model: PreTrainedModel, ids: list[int], margin: float) -> torch.Tensor:
    """[row] bool: True where, in every layer, the last expert taken leads the first one left by
    ``margin`` in the router's logits. All rows of a model without experts.
    """
    decided = torch.ones(len(ids), dtype=torch.bool)
    names = ("num_experts_per_tok", "top_k_experts")
    taken = max(getattr(model.config, name, None) or 0 for name in names)

    def look(router: nn.Module, _: Any, out: tuple[torch.Tensor, ...]) -> None:
        shares = type(router).__name__.endswith(ROUTERS_OF_SHARES)
        logits = out[0].log() if shares else out[0]
        largest = logits.topk(taken + 1).values
        decided.logical_and_(largest[:, -2] - largest[:, -1] > margin)

    with ExitStack() as hooks:
        for module in model.modules():
            if type(module).__name__.endswith((ROUTERS_OF_LOGITS, ROUTERS_OF_SHARES)):
                hooks.callback(module.register_forward_hook(look).remove)
        reference_logits(model, ids)
    return decided
