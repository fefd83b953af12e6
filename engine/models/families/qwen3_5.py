"""The dense Qwen3.5 family (also 3.6 and 3.8), text part: delta rules and gated attention.

GGUF calls it ``qwen35`` and stores the value heads of its delta rules in tiles; published
checkpoints store norm weights less one. Text alone has one position an element, so the rotary
sections for pictures change nothing.
"""

from __future__ import annotations

from engine.checkpoint.source import CheckpointSource
from engine.models import layers
from engine.models.blocks.hybrid import DEFAULTS, KEYS, NAMES, hybrid_spec, open_hybrid
from engine.models.published import Published
from engine.models.spec import Activation, Branch, HeadOrder, ModelSpec, Norm

PUBLISHED = Published(names=NAMES, keys=KEYS, defaults=DEFAULTS)


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Read a dense Qwen3.5 checkpoint.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run.
    """
    opened = open_hybrid(source, PUBLISHED, HeadOrder.TILED)
    layers.refuse_experts(opened.keys)
    tensors, geometry = opened.tensors, opened.geometry
    blocks = opened.keys.count("block_count")

    def feed_forward(index: int, norm: Norm) -> tuple[Branch, ...]:
        width = layers.inner_width(opened.keys, index, blocks)
        body = layers.feed_forward(tensors, index, geometry, Activation.SILU, width)
        return (Branch(norm, body),)

    return hybrid_spec("qwen3_5", opened, feed_forward)
