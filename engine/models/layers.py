"""What the dense families share: geometry, rotary rule, attention and feed-forward of a block.

A family file says which norms, windows and styles it has; this file reads the common keys and
names the common tensors. No torch here.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from engine.checkpoint.source import CheckpointSource
from engine.errors import CheckpointUnreadable, UnsupportedFamily
from engine.models import rope
from engine.models.metadata import FamilyKeys
from engine.models.spec import Activation, FeedForwardSpec, RopeSpec, RopeStyle
from engine.models.tensors import TensorNames


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes that every layer of a dense model shares."""

    vocabulary: int
    hidden: int
    layer_count: int
    head_count: int
    kv_head_count: int
    head_dim: int
    eps: float
    context_tokens: int


def read_geometry(keys: FamilyKeys, tensors: TensorNames) -> Geometry:
    """Read and cross-check the sizes; the vocabulary is the embedding's number of rows."""
    hidden = keys.count("embedding_length")
    layer_count = keys.count("block_count")
    if layer_count > len(tensors):
        raise keys.refusal("block_count", f"at most the file's {len(tensors)} tensors")
    heads = keys.uniform_count("attention.head_count")
    kv_heads = keys.uniform_count("attention.head_count_kv", heads)
    if heads % kv_heads:
        raise keys.refusal("attention.head_count_kv", f"a divisor of the {heads} heads")
    if not keys.has("attention.key_length") and hidden % heads:
        raise keys.refusal("attention.head_count", f"a divisor of the width {hidden}")
    head_dim = keys.count("attention.key_length", max(hidden // heads, 1))
    if head_dim % 2:
        raise keys.refusal("attention.key_length", "an even number of elements a head")
    if keys.count("attention.value_length", head_dim) != head_dim:
        raise keys.refusal("attention.value_length", f"the same as the key length, {head_dim}")
    vocabulary = tensors.shape("token_embd.weight", 2)[0]
    tensors.checked("token_embd.weight", (vocabulary, hidden))
    # The file's size bounds this tensor, so nothing below can be larger than the file allows.
    tensors.checked("blk.0.attn_q.weight", (heads * head_dim, hidden))
    return Geometry(
        vocabulary=vocabulary,
        hidden=hidden,
        layer_count=layer_count,
        head_count=heads,
        kv_head_count=kv_heads,
        head_dim=head_dim,
        eps=keys.positive("attention.layer_norm_rms_epsilon"),
        context_tokens=keys.count("context_length"),
    )


def refuse_experts(keys: FamilyKeys) -> None:
    """Raise UnsupportedFamily for a mixture of experts."""
    count = keys.count_or_zero("expert_count")
    if count:
        sentence = (
            f"{keys.file} is a {keys.prefix} model with {count} experts; only dense ones run."
        )
        raise UnsupportedFamily(sentence, expert_count=count)


def rotated_dims(keys: FamilyKeys, head_dim: int) -> int:
    """How many elements of a head rotate: an even number, at most the head."""
    dims = keys.count("rope.dimension_count", head_dim)
    if dims % 2 or dims > head_dim:
        raise keys.refusal("rope.dimension_count", f"an even number of at most {head_dim}")
    return dims


def scaled_rope(
    keys: FamilyKeys, source: CheckpointSource, dims: int, style: RopeStyle
) -> RopeSpec:
    """The rotary rule of full attention with whatever scaling the file asks for.

    ``rope_freqs.weight`` (llama3) divides first, then linear or YaRN scaling applies, as in every
    engine that reads these files.
    """
    return computable_rope(keys, lambda: _scaled_rope(keys, source, dims, style))


def computable_rope(keys: FamilyKeys, build: Callable[[], RopeSpec]) -> RopeSpec:
    """The rule that ``build`` makes of the file's numbers, refused where they give no angles."""
    try:
        found = build()
    except (ArithmeticError, ValueError) as error:
        raise _no_angles(keys) from error
    if not all(map(math.isfinite, (found.magnitude, *found.frequencies))):
        raise _no_angles(keys)
    return found


def feed_forward(
    tensors: TensorNames, layer: int, geometry: Geometry, activation: Activation
) -> FeedForwardSpec:
    """Gate, up and down of a block; the inner width is the gate's own."""
    stem = f"blk.{layer}.ffn"
    width = tensors.shape(f"{stem}_gate.weight", 2)[0]
    return FeedForwardSpec(
        width=width,
        gate=tensors.linear(f"{stem}_gate", width, geometry.hidden),
        up=tensors.linear(f"{stem}_up", width, geometry.hidden),
        down=tensors.linear(f"{stem}_down", geometry.hidden, width),
        activation=activation,
    )


def head_tensor(keys: FamilyKeys, tensors: TensorNames, geometry: Geometry) -> str:
    """The tensor that makes the logits: ``output`` where the file has one, else the embedding.

    A published checkpoint whose config ties the two may hold a copy, which is left alone.
    """
    shape = (geometry.vocabulary, geometry.hidden)
    if tensors.has("output.weight"):
        own = tensors.checked("output.weight", shape)
        if not keys.flag("tied", False):
            return own
    return tensors.checked("token_embd.weight", shape)


def _no_angles(keys: FamilyKeys) -> CheckpointUnreadable:
    return CheckpointUnreadable(
        f"{keys.file} has rope numbers ({keys.prefix}.rope.*) from which no finite angle follows."
    )


def _scaled_rope(
    keys: FamilyKeys, source: CheckpointSource, dims: int, style: RopeStyle
) -> RopeSpec:
    base = keys.positive("rope.freq_base", 10000.0)
    frequencies = rope.plain(base, dims)
    if "rope_freqs.weight" in source.tensors:
        frequencies = rope.divided(frequencies, _divisors(source, len(frequencies)))
    kind = keys.text("rope.scaling.type", "linear")
    factor = keys.number("rope.scaling.factor", keys.number("rope.scale_linear", 0.0))
    if factor < 0:
        raise keys.refusal("rope.scaling.factor", "a number of 0 or more")
    match kind:
        case "none":
            return RopeSpec(style, frequencies)
        case "linear":
            return RopeSpec(style, rope.linear(frequencies, factor or 1.0))
        case "yarn":
            return _yarn_rope(keys, style, frequencies, base, factor or 1.0)
        case _:
            sentence = f"{keys.file} asks for rope scaling {kind!r}; none, linear and yarn run."
            raise UnsupportedFamily(sentence, scaling=kind)


def _yarn_rope(
    keys: FamilyKeys, style: RopeStyle, frequencies: tuple[float, ...], base: float, factor: float
) -> RopeSpec:
    if base <= 1.0:
        raise keys.refusal("rope.freq_base", "more than 1, which yarn needs")
    rule = rope.Yarn(
        base=base,
        factor=factor,
        original_context=keys.count(
            "rope.scaling.original_context_length", keys.count("context_length")
        ),
        beta_fast=keys.positive("rope.scaling.yarn_beta_fast", 32.0),
        beta_slow=keys.positive("rope.scaling.yarn_beta_slow", 1.0),
        extrapolation=keys.number("rope.scaling.yarn_ext_factor", 1.0),
    )
    scaled = rope.yarn(frequencies, rule)
    magnitude = keys.positive("rope.scaling.yarn_attn_factor", rope.yarn_magnitude(factor))
    return RopeSpec(style, scaled, magnitude * keys.positive("rope.scaling.attn_factor", 1.0))


def _divisors(source: CheckpointSource, pair_count: int) -> tuple[float, ...]:
    name = "rope_freqs.weight"
    facts = source.tensors[name]
    file = source.files[0].name
    if facts.shape != (pair_count,) or facts.format != "f32":
        raise CheckpointUnreadable(
            f"{file}: tensor {name} is {facts.format} of shape {facts.shape}; "
            f"wanted f32 of shape ({pair_count},).",
            tensor=name,
        )
    values = struct.unpack(f"<{pair_count}f", source.tensor_bytes(name))
    if not all(0.0 < value < float("inf") for value in values):
        raise CheckpointUnreadable(f"{file}: tensor {name} holds a divisor that is not above 0.")
    return values
