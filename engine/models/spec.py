"""A model as frozen facts: which tensors, in which order, with which numbers.

A family file turns a checkpoint's metadata into one ``ModelSpec``; the executors
(``engine.native`` on the CPU library, ``engine.forward`` in torch for references) read nothing
else. No torch here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RopeStyle(Enum):
    """Which elements of a head rotate together: (p, p + dims/2) or (2p, 2p + 1)."""

    HALVES = "halves"
    PAIRS = "pairs"


class Activation(Enum):
    """The gate's nonlinearity."""

    SILU = "silu"
    GELU_TANH = "gelu_tanh"


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """Rotary positions: angle of pair p at position t is ``t * frequencies[p]``.

    Attributes:
        frequencies: one a pair, radians a position, every scaling already applied; the first
            ``2 * len(frequencies)`` elements of a head rotate, the rest pass.
        magnitude: factor on cosine and sine (YaRN's attention factor), else 1.
    """

    style: RopeStyle
    frequencies: tuple[float, ...]
    magnitude: float = 1.0


@dataclass(frozen=True, slots=True)
class Linear:
    """A product ``x @ weight.T + bias`` by tensor names; weight has shape (out, in)."""

    weight: str
    bias: str | None = None


@dataclass(frozen=True, slots=True)
class Norm:
    """An RMS norm by the name of its weight: ``x / sqrt(mean(x*x) + eps) * weight``."""

    weight: str
    eps: float


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """Grouped-query attention over the KV pages of one group.

    Attributes:
        group: index into ``ModelSpec.groups``.
        slot: index of this layer among the group's KV-owning layers.
        window: rows attended, the own one included; None attends to all.
    """

    group: int
    slot: int
    head_count: int
    kv_head_count: int
    head_dim: int
    scale: float
    window: int | None
    rope: RopeSpec | None
    query: Linear
    key: Linear
    value: Linear
    output: Linear
    query_norm: Norm | None = None
    key_norm: Norm | None = None


@dataclass(frozen=True, slots=True)
class FeedForwardSpec:
    """``down(activation(gate(x)) * up(x))``; ``width`` is the inner number of columns."""

    width: int
    gate: Linear
    up: Linear
    down: Linear
    activation: Activation


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One block: ``x += post(attention(norm(x)))``, then the same with the feed-forward."""

    attention_norm: Norm
    attention: AttentionSpec
    feed_forward_norm: Norm
    feed_forward: FeedForwardSpec
    attention_post_norm: Norm | None = None
    feed_forward_post_norm: Norm | None = None


@dataclass(frozen=True, slots=True)
class PageGroupSpec:
    """KV-owning layers of one kind that share page ids (design 6).

    Attributes:
        window: None for full attention, else the sliding window in rows.
        layer_count: layers that own KV in this group.
        kv_head_count, head_dim: geometry of one row of one layer, the same for K and V.
    """

    window: int | None
    layer_count: int
    kv_head_count: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Everything the executors need to know of a model.

    Attributes:
        embedding: tensor (vocabulary, hidden); its row is multiplied by ``embedding_scale``.
        head: tensor (vocabulary, hidden) that makes the logits; the embedding where tied.
        context_tokens: the longest position the model was made for.
        notes: what a person should know about how the file was read.
    """

    family: str
    vocabulary: int
    hidden: int
    context_tokens: int
    embedding: str
    embedding_scale: float
    layers: tuple[LayerSpec, ...]
    final_norm: Norm
    head: str
    groups: tuple[PageGroupSpec, ...]
    notes: tuple[str, ...] = ()
