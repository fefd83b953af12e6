"""What the dense families share: geometry, rotary rule, attention and feed-forward of a block.

A family file says which norms, windows and styles it has; this file reads the common keys and
names the common tensors. No torch here.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from engine.checkpoint.source import CheckpointSource, MetadataScalar
from engine.errors import CheckpointUnreadable, UnsupportedFamily
from engine.models import rope
from engine.models.metadata import FamilyKeys
from engine.models.spec import Activation, FeedForwardSpec, RopeSpec, RopeStyle
from engine.models.tensors import TensorNames

OWN_HEAD_NOTE = "The config ties the head to the embedding, but the file has a head, which is used."
NO_HEAD_NOTE = (
    "The file has no head and the config does not say why; the embedding makes the logits."
)


@dataclass(frozen=True, slots=True)
class Body:
    """Sizes outside of a model's layers."""

    vocabulary: int
    hidden: int
    layer_count: int
    eps: float
    context_tokens: int


@dataclass(frozen=True, slots=True)
class Geometry(Body):
    """Sizes of a model whose layers all have the same heads."""

    head_count: int
    kv_head_count: int
    head_dim: int


def trunk_layers(keys: FamilyKeys, tensors: TensorNames) -> int:
    """The number of layers that run: GGUF counts those of a draft among its blocks."""
    blocks = keys.count("block_count")
    if blocks > len(tensors):
        raise keys.refusal("block_count", f"at most the file's {len(tensors)} tensors")
    drafts = keys.count_or_zero("nextn_predict_layers")
    if drafts >= blocks:
        raise keys.refusal("nextn_predict_layers", f"fewer than the {blocks} blocks")
    return blocks - drafts


def read_body(keys: FamilyKeys, tensors: TensorNames) -> Body:
    """Read and cross-check the sizes; the vocabulary is the embedding's number of rows."""
    hidden = keys.count("embedding_length")
    layer_count = trunk_layers(keys, tensors)
    vocabulary = tensors.shape("token_embd.weight", 2)[0]
    tensors.checked("token_embd.weight", (vocabulary, hidden))
    return Body(
        vocabulary=vocabulary,
        hidden=hidden,
        layer_count=layer_count,
        eps=keys.positive("attention.layer_norm_rms_epsilon"),
        context_tokens=keys.count("context_length"),
    )


def read_geometry(
    keys: FamilyKeys, tensors: TensorNames, layer: int = 0, query_parts: int = 1
) -> Geometry:
    """The sizes of a model whose layers all have the same heads.

    Args:
        layer: one that has attention; its query projection is checked.
        query_parts: rows of that projection for each row of a query (2 where it holds a gate).
    """
    body = read_body(keys, tensors)
    hidden = body.hidden
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
    # The file's size bounds this tensor, so nothing below can be larger than the file allows.
    name, rows = f"blk.{layer}.attn_q.weight", query_parts * heads * head_dim
    if not tensors.has(name) and tensors.has(f"blk.{layer}.attn_qkv.weight"):
        name, rows = f"blk.{layer}.attn_qkv.weight", rows + 2 * kv_heads * head_dim
    tensors.checked(name, (rows, hidden))
    return Geometry(
        vocabulary=body.vocabulary,
        hidden=hidden,
        layer_count=body.layer_count,
        eps=body.eps,
        context_tokens=body.context_tokens,
        head_count=heads,
        kv_head_count=kv_heads,
        head_dim=head_dim,
    )


def refuse_experts(keys: FamilyKeys) -> None:
    """Raise UnsupportedFamily for a mixture of experts."""
    count = keys.count_or_zero("expert_count")
    if count:
        sentence = (
            f"{keys.file} is a {keys.prefix} model with {count} experts; only dense ones run."
        )
        raise UnsupportedFamily(sentence, expert_count=count)


def refuse_other(keys: FamilyKeys, key: str, known: tuple[MetadataScalar, ...]) -> None:
    """Raise UnsupportedFamily where the file asks for something else than what is known to run."""
    if keys.has(key) and keys.raw(key) not in known:
        raise keys.unsupported(key, " or ".join(str(value) for value in known))


def inner_width(keys: FamilyKeys, layer: int, layer_count: int) -> int | None:
    """The feed-forward's inner width that the file states for a layer; None where it says none."""
    if not keys.has("feed_forward_length"):
        return None
    return keys.layer_count("feed_forward_length", layer, layer_count)


def rotated_dims(keys: FamilyKeys, head_dim: int) -> int:
    """How many elements of a head rotate: an even number, at most the head."""
    stated, part = "rope.dimension_count", "rope.partial_rotary_factor"
    share = keys.positive(part, 1.0)
    if share > 1.0:
        raise keys.refusal(part, "at most 1")
    dims = keys.count(stated, int(head_dim * share))
    if dims % 2 or dims > head_dim:
        wanted = f"an even number of at most {head_dim} elements a head"
        raise keys.refusal(stated if keys.has(stated) else part, wanted)
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
    tensors: TensorNames,
    layer: int,
    geometry: Body,
    activation: Activation,
    width: int | None = None,
) -> FeedForwardSpec:
    """Gate, up and down of a block; without ``width`` the inner one is the gate's own."""
    stem = f"blk.{layer}.ffn"
    if width is None:
        width = tensors.shape(f"{stem}_gate.weight", 2)[0]
    return FeedForwardSpec(
        width=width,
        gate=tensors.linear(f"{stem}_gate", width, geometry.hidden),
        up=tensors.linear(f"{stem}_up", width, geometry.hidden),
        down=tensors.linear(f"{stem}_down", geometry.hidden, width),
        activation=activation,
    )


def head_tensor(keys: FamilyKeys, tensors: TensorNames, geometry: Body) -> str:
    """The tensor that makes the logits: ``output`` where the file has one, else the embedding.

    A published checkpoint whose config ties the two may hold a head all the same: mostly a copy
    (``engine.loading.head`` finds that out), else what its makers trained, and it counts. One whose
    config says that they are apart must have it.
    """
    own = tensors.has("output.weight")
    tied = keys.flag("tied", not own)
    if own or not tied:
        if own and tied:
            tensors.note(OWN_HEAD_NOTE)
        return tensors.checked("output.weight", (geometry.vocabulary, geometry.hidden))
    if tensors.published and not keys.has("tied"):
        tensors.note(NO_HEAD_NOTE)
    return tensors.checked("token_embd.weight", (geometry.vocabulary, geometry.hidden))


def logit_cap(keys: FamilyKeys) -> float | None:
    """The cap on the logits, None where the file has none or says 0."""
    cap = keys.number("final_logit_softcapping", 0.0)
    if cap < 0.0:
        raise keys.refusal("final_logit_softcapping", "a number of 0 or more")
    return cap or None


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
        case "llama3":
            return RopeSpec(style, rope.llama3(frequencies, _llama3_rule(keys, factor or 1.0)))
        case "yarn":
            return _yarn_rope(keys, style, frequencies, base, factor or 1.0)
        case _:
            sentence = (
                f"{keys.file} asks for rope scaling {kind!r}; none, linear, llama3 and yarn run."
            )
            raise UnsupportedFamily(sentence, scaling=kind)


def _llama3_rule(keys: FamilyKeys, factor: float) -> rope.Llama3:
    low = keys.positive("rope.scaling.low_freq_factor")
    high = keys.positive("rope.scaling.high_freq_factor")
    if high <= low:
        raise keys.refusal("rope.scaling.high_freq_factor", f"more than low_freq_factor, {low}")
    return rope.Llama3(
        factor=factor,
        low=low,
        high=high,
        original_context=keys.count(
            "rope.scaling.original_context_length", keys.count("context_length")
        ),
    )


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
        whole_pairs=keys.flag("rope.scaling.truncate", True),
    )
    scaled = rope.yarn(frequencies, rule)
    usual = rope.yarn_magnitude(factor)
    if keys.has("rope.scaling.mscale") and keys.has("rope.scaling.mscale_all_dim"):
        usual = rope.yarn_magnitude(factor, keys.positive("rope.scaling.mscale"))
        usual /= rope.yarn_magnitude(factor, keys.positive("rope.scaling.mscale_all_dim"))
    magnitude = keys.positive("rope.scaling.yarn_attn_factor", usual)
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
