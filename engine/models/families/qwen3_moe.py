"""The Qwen3 mixtures of experts: as ``qwen3`` but for the second halves, no shared expert."""

from __future__ import annotations

from engine.checkpoint.source import CheckpointSource
from engine.models.blocks import mixture
from engine.models.families import qwen3
from engine.models.published import Published
from engine.models.spec import Branch, ModelSpec, Norm

DEFAULTS = {**qwen3.DEFAULTS, "expert_weights_norm": False}


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Read a Qwen3 checkpoint with experts.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run.
    """
    published = Published(
        names={**qwen3.NAMES, **mixture.stored_names(source.dialect)},
        keys={**qwen3.KEYS, **mixture.SPARSE_KEYS},
        defaults=DEFAULTS,
    )
    opened = qwen3.open_qwen3(source, published)
    sparse = mixture.expert_layers(opened.keys, opened.geometry.layer_count)
    chosen = mixture.read_mixture(opened.keys, opened.geometry.hidden, shared=False)

    def second_half(index: int, norm: Norm) -> tuple[Branch, ...]:
        if sparse[index]:
            return mixture.mixture_branches(opened.tensors, index, norm, chosen)
        return (qwen3.dense_branch(opened, index, norm),)

    return qwen3.qwen3_spec("qwen3_moe", opened, second_half)
