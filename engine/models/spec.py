"""A model as frozen facts: which tensors, in which order, with which numbers.

A family file turns a checkpoint's metadata into one ``ModelSpec``; the executors
(``engine.native`` on the CPU library, ``engine.forward`` in torch for references) read nothing
else. What a checkpoint's format changes (a norm stored less one, rows in another order) is said
here too, so that weights keep the bits of the file. No torch here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

RowRuns = tuple[tuple[int, int], ...]
"""Runs (first, count) of a matrix's rows."""


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
    """A product ``x @ weight.T + bias`` by tensor names; weight has shape (out, in).

    Attributes:
        weight: a stack (experts, out, in) counts as (experts * out, in), a vector (in,) as (1, in).
        rows: the weight's rows that take part, and the bias's elements with them, in the order of
            the output; None for all. They cut one expert out of a stack and part a fused
            projection.
    """

    weight: str
    bias: str | None = None
    rows: RowRuns | None = None


@dataclass(frozen=True, slots=True)
class Norm:
    """An RMS norm: ``x / sqrt(mean(x*x) + eps) * (weight + offset)``.

    Attributes:
        weight: name of the tensor; None multiplies by nothing.
        offset: 1 where the checkpoint stores weights less one.
    """

    weight: str | None
    eps: float
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """Grouped-query attention over the KV pages of one group.

    Attributes:
        group: index into ``ModelSpec.groups``.
        slot: index of the KV-owning layer among the group's; a layer without ``key`` reads the
            pages of an earlier layer, which wrote them at this slot.
        window: rows attended, the own one included; None attends to all.
        key: None where the layer owns no K and V.
        value: None where the values are the keys as projected, before their norm and rotation.
        value_norm: over head_dim, on the values.
        gate: one number an output element; its sigmoid multiplies what ``output`` takes in.
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
    key: Linear | None
    value: Linear | None
    output: Linear
    query_norm: Norm | None = None
    key_norm: Norm | None = None
    value_norm: Norm | None = None
    gate: Linear | None = None

    @property
    def owns_kv(self) -> bool:
        """Whether this layer writes K and V."""
        return self.key is not None


class HeadOrder(Enum):
    """Which key head serves value head h of Hv, with Hk key heads.

    ``GROUPED``: h // (Hv / Hk), as published checkpoints have it. ``TILED``: h % Hk, as GGUF files
    of the qwen35 family store their rows.
    """

    GROUPED = "grouped"
    TILED = "tiled"


@dataclass(frozen=True, slots=True)
class DeltaSpec:
    """A gated delta rule layer (Gated DeltaNet), with one recurrent state a value head.

    With q, k, v from ``silu(causal depthwise convolution of mixed(x))``, q and k of length 1 (q
    times key_dim ** -0.5), ``g = decay * softplus(alpha(x) + time_bias)``, ``b = sigmoid(beta(x))``
    and a state S of [key_dim, value_dim]:

        S = S * exp(g);  S = S + k (b * (v - k.S))';  o = q.S
        output(concat over heads of norm(o) * silu(gate(x)))

    Attributes:
        slot: index of this layer among those with a recurrent state.
        mixed: rows q | k | v, key heads first: (2 * Hk * key_dim + Hv * value_dim, hidden).
        convolution: tensor of rows * kernel numbers, the newest input last.
        decay: tensor (Hv,).
        decay_is_log: the tensor holds log(-decay).
        norm: over value_dim.
        eps: inside the root that makes q and k length 1.
    """

    slot: int
    key_head_count: int
    value_head_count: int
    key_dim: int
    value_dim: int
    kernel: int
    order: HeadOrder
    mixed: Linear
    gate: Linear
    beta: Linear
    alpha: Linear
    convolution: str
    decay: str
    decay_is_log: bool
    time_bias: str
    norm: Norm
    output: Linear
    eps: float = 1e-6

    @property
    def channels(self) -> int:
        """Rows of ``mixed``."""
        return 2 * self.key_head_count * self.key_dim + self.value_head_count * self.value_dim


Mixer = AttentionSpec | DeltaSpec


@dataclass(frozen=True, slots=True)
class FeedForwardSpec:
    """``down(activation(gate(x)) * up(x))``; ``width`` is the inner number of columns."""

    width: int
    gate: Linear
    up: Linear
    down: Linear
    activation: Activation


@dataclass(frozen=True, slots=True)
class ExpertsSpec:
    """A mixture: the ``active_count`` likeliest of many feed-forwards, weighted.

    ``p = softmax(router(input * router_scale))`` over all experts in float32; the largest are
    taken, the lower index first among equals, and their weights divided by their sum; then
    ``weight[e] * scales[e]`` times expert e's output, added in the order of expert indices.

    Attributes:
        router_norm: the router reads the residual through this norm; None: the branch's input.
        router_scale: factor on what the router reads.
        scales: tensor (experts,), None for none.
    """

    active_count: int
    router: Linear
    experts: tuple[FeedForwardSpec, ...]
    router_norm: Norm | None = None
    router_scale: float = 1.0
    scales: str | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """One addend of a layer's second half: ``post_norm(body(norm(x)))``.

    Attributes:
        gate: one row; the sigmoid of its product with the normed input multiplies the output.
    """

    norm: Norm
    body: FeedForwardSpec | ExpertsSpec
    post_norm: Norm | None = None
    gate: Linear | None = None


@dataclass(frozen=True, slots=True)
class PerLayerSpec:
    """How one layer takes in its per-layer input p: ``x += norm(project(gelu(gate(x)) * p))``."""

    gate: Linear
    project: Linear
    norm: Norm
    activation: Activation


@dataclass(frozen=True, slots=True)
class PerLayerInputs:
    """Inputs of ``width`` for each layer, made of the token's id and its embedding.

    ``(row(token) * embedding_scale + norm(projection(x) * projection_scale)) * scale``, cut into
    one piece a layer before the norm; x is the scaled embedding.

    Attributes:
        embedding: tensor (vocabulary, layers * width), read by rows only.
    """

    width: int
    embedding: str
    embedding_scale: float
    projection: Linear
    projection_scale: float
    norm: Norm
    scale: float


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One block.

    ``x += mixer_post_norm(mixer(mixer_norm(x)))``, then ``x += branches_post_norm(sum of the
    branches)``, then the per-layer input, then everything times ``scale``.

    Attributes:
        scale: tensor of one number, None for 1.
    """

    mixer_norm: Norm
    mixer: Mixer
    branches: tuple[Branch, ...]
    mixer_post_norm: Norm | None = None
    branches_post_norm: Norm | None = None
    per_layer: PerLayerSpec | None = None
    scale: str | None = None


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
class RecurrentSpec:
    """The recurrent part of a stream's state: the same for every layer that has one.

    Attributes:
        state_shape: (value heads, key_dim, value_dim) of float32, a layer.
        tail_shape: (kernel - 1, channels) of float32: the newest inputs of the convolution.
    """

    layer_count: int
    state_shape: tuple[int, int, int]
    tail_shape: tuple[int, int]

    @property
    def stream_bytes(self) -> int:
        """Bytes of one stream over all layers."""
        heads, keys, values = self.state_shape
        rows, channels = self.tail_shape
        return 4 * self.layer_count * (heads * keys * values + rows * channels)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Everything the executors need to know of a model.

    Attributes:
        embedding: tensor (vocabulary, hidden); its row is multiplied by ``embedding_scale``.
        head: tensor (vocabulary, hidden) that makes the logits; the embedding where tied.
        context_tokens: the longest position the model was made for.
        notes: what a person should know about how the file was read.
        recurrent: None where no layer has a recurrent state.
        logit_cap: c of ``c * tanh(logits / c)``, None for logits as they are.
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
    recurrent: RecurrentSpec | None = None
    per_layer: PerLayerInputs | None = None
    logit_cap: float | None = None

    @property
    def attentions(self) -> tuple[AttentionSpec, ...]:
        """The attention layers in order."""
        return tuple(layer.mixer for layer in self.layers if isinstance(layer.mixer, AttentionSpec))
