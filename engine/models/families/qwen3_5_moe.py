"""The Qwen3.5 mixtures of experts (also 3.6), text part: as ``qwen3_5`` but for the second halves.

Every layer chooses among many experts and adds one that every row takes, behind a gate of its own.
"""

from __future__ import annotations

from engine.checkpoint.source import CheckpointSource
from engine.models.blocks.hybrid import DEFAULTS, KEYS, NAMES, hybrid_spec, open_hybrid
from engine.models.blocks.mixture import SHARED_KEYS, mixture_branches, read_mixture, stored_names
from engine.models.published import Published
from engine.models.spec import Branch, HeadOrder, ModelSpec, Norm


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Read a Qwen3.5 checkpoint with experts.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run.
    """
    published = Published(
        names={**NAMES, **stored_names(source.dialect)},
        keys={**KEYS, **SHARED_KEYS},
        defaults=DEFAULTS,
    )
    opened = open_hybrid(source, published, HeadOrder.TILED)
    mixture = read_mixture(opened.keys, opened.geometry.hidden, shared=True)

    def experts(index: int, norm: Norm) -> tuple[Branch, ...]:
        return mixture_branches(opened.tensors, index, norm, mixture)

    return hybrid_spec("qwen3_5_moe", opened, experts)
