"""The Qwen3-Next family: as ``qwen3_5_moe``, its projections fused for each key head in turn.

Its GGUF files (``qwen3next``) keep the published order of value heads. A config may leave some
layers without experts; they have a plain feed-forward.
"""

from __future__ import annotations

from engine.checkpoint.source import CheckpointSource
from engine.models import layers
from engine.models.blocks import mixture
from engine.models.blocks.hybrid import DEFAULTS, KEYS, NAMES, hybrid_spec, open_hybrid
from engine.models.published import Published
from engine.models.spec import Activation, Branch, HeadOrder, ModelSpec, Norm


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Read a Qwen3-Next checkpoint.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run.
    """
    published = Published(
        names={**NAMES, **mixture.stored_names(source.dialect)},
        keys={**KEYS, **mixture.SHARED_KEYS, **mixture.SPARSE_KEYS},
        defaults=DEFAULTS,
    )
    opened = open_hybrid(source, published, HeadOrder.GROUPED)
    keys, tensors, geometry = opened.keys, opened.tensors, opened.geometry
    sparse = mixture.expert_layers(keys, geometry.layer_count)
    shared = mixture.read_mixture(keys, geometry.hidden, shared=True)

    def second_half(index: int, norm: Norm) -> tuple[Branch, ...]:
        if sparse[index]:
            return mixture.mixture_branches(tensors, index, norm, shared)
        width = keys.count("feed_forward_length")
        return (
            Branch(norm, layers.feed_forward(tensors, index, geometry, Activation.SILU, width)),
        )

    return hybrid_spec("qwen3_next", opened, second_half)
