"""The gemma4 family, text part: E2B, E4B, 26B-A4B, 31B and the unified 12B.

Sandwich norms with plain weights, queries and keys normed by head, values too but by no weight,
scores not divided. Full layers have heads of another length, of which a share of the pairs turns,
and may have no value projection. Late layers may read the K and V of earlier ones; layers may take
in an embedding of their own; the feed-forward may stand beside a mixture of experts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.checkpoint.source import CheckpointSource, Dialect
from engine.models import layers
from engine.models.attention import Kind, attention, kv_slots, sharing_attention
from engine.models.blocks import per_layer
from engine.models.blocks.heads import heads_by_kind
from engine.models.blocks.sliding import (
    proportional_rope,
    published_sliding,
    sliding_pattern,
    sliding_rope,
    sliding_window,
)
from engine.models.experts import ExpertSizes, experts
from engine.models.metadata import FamilyKeys, family_keys
from engine.models.published import COMMON_NAMES, Published
from engine.models.spec import (
    Activation,
    AttentionSpec,
    Branch,
    ExpertsSpec,
    LayerSpec,
    ModelSpec,
    Norm,
    PageGroupSpec,
)
from engine.models.tensors import TensorNames

NAMES: Mapping[str, str] = {
    **COMMON_NAMES,
    **per_layer.NAMES,
    "blk.*.attn_v_norm": "layers.*.self_attn.v_norm",
    "blk.*.post_attention_norm": "layers.*.post_attention_layernorm",
    "blk.*.ffn_norm": "layers.*.pre_feedforward_layernorm",
    "blk.*.post_ffw_norm": "layers.*.post_feedforward_layernorm",
    "blk.*.post_ffw_norm_1": "layers.*.post_feedforward_layernorm_1",
    "blk.*.pre_ffw_norm_2": "layers.*.pre_feedforward_layernorm_2",
    "blk.*.post_ffw_norm_2": "layers.*.post_feedforward_layernorm_2",
    "blk.*.layer_output_scale.weight": "layers.*.layer_scalar",
    "blk.*.ffn_gate_inp": "layers.*.router.proj",
    "blk.*.ffn_gate_inp.scale": "layers.*.router.scale",
    "blk.*.ffn_down_exps.scale": "layers.*.router.per_expert_scale",
}
STACKS = {
    Dialect.GGUF: {},
    Dialect.PUBLISHED: {
        "blk.*.ffn_gate_up_exps.weight": "layers.*.experts.gate_up_proj",
        "blk.*.ffn_down_exps.weight": "layers.*.experts.down_proj",
    },
    Dialect.MLX: {
        "blk.*.ffn_gate_exps": "layers.*.experts.switch_glu.gate_proj",
        "blk.*.ffn_up_exps": "layers.*.experts.switch_glu.up_proj",
        "blk.*.ffn_down_exps": "layers.*.experts.switch_glu.down_proj",
    },
}
KEYS = {
    "activation": "hidden_activation",
    "attention.head_count_kv_full": "num_global_key_value_heads",
    "attention.key_length": "global_head_dim",
    "attention.key_length_swa": "head_dim",
    "attention.shared_kv_layers": "num_kv_shared_layers",
    "double_wide": "use_double_wide_mlp",
    "embedding_length_per_layer_input": "hidden_size_per_layer_input",
    "expert_used_count": "top_k_experts",
    "keys_are_values": "attention_k_eq_v",
    "mixture": "enable_moe_block",
    "sees_ahead": "use_bidirectional_attention",
}
DEFAULTS = {
    "attention.head_count": 8,
    "attention.head_count_kv": 4,
    "attention.key_length": 512,
    "attention.key_length_swa": 256,
    "attention.layer_norm_rms_epsilon": 1e-6,
    "attention.sliding_window": 512,
    "block_count": 30,
    "context_length": 131_072,
    "embedding_length": 2304,
    "embedding_length_per_layer_input": 256,
    "feed_forward_length": 9216,
    "mixture": False,
    "rope.freq_base": 1_000_000.0,
    "tied": True,
}
UNIFIED_DEFAULTS = DEFAULTS | {
    "attention.sliding_window": 1024,
    "context_length": 262_144,
    "embedding_length_per_layer_input": 0,
}


@dataclass(frozen=True, slots=True)
class _Reading:
    """What building one layer needs of the whole.

    Attributes:
        kinds: by whether a layer slides.
        own_count: layers before those that share K and V.
        per_layer_width: of the layers' own inputs, 0 for none.
    """

    source: CheckpointSource
    keys: FamilyKeys
    tensors: TensorNames
    body: layers.Body
    kinds: Mapping[bool, Kind]
    own_count: int
    per_layer_width: int

    def norm(self, stem: str) -> Norm:
        """A norm over the residual's width."""
        return self.tensors.norm(stem, self.body.hidden, self.body.eps)


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Read a gemma4 checkpoint.

    Raises:
        CheckpointUnreadable: a key or tensor is missing or has another type or shape.
        UnsupportedFamily: the file is a variant that does not run.
    """
    unified = source.architecture.startswith("gemma4_unified")
    names = {**NAMES, **STACKS[source.dialect]}
    keys = family_keys(source, Published(names, KEYS, UNIFIED_DEFAULTS if unified else DEFAULTS))
    tensors = TensorNames(source, names)
    layers.refuse_other(keys, "activation", ("gelu_pytorch_tanh",))
    layers.refuse_other(keys, "sees_ahead", ("vision",))
    body = layers.read_body(keys, tensors)
    sliding = _sliding(source, keys, body.layer_count)
    own_count = _own_count(keys, sliding)
    kinds = _kinds(source, keys, tensors, sliding)
    width = keys.count_or_zero("embedding_length_per_layer_input")
    reading = _Reading(source, keys, tensors, body, kinds, own_count, width)
    slots = kv_slots(sliding, own_count)
    built = tuple(
        _layer(reading, index, sliding[index], slots[index]) for index in range(len(slots))
    )
    spec = ModelSpec(
        family="gemma4_unified" if unified else "gemma4",
        vocabulary=body.vocabulary,
        hidden=body.hidden,
        context_tokens=body.context_tokens,
        embedding=tensors.name("token_embd.weight"),
        embedding_scale=float(body.hidden**0.5),
        layers=built,
        final_norm=reading.norm("output_norm"),
        head=layers.head_tensor(keys, tensors, body),
        groups=_groups(kinds, sliding[:own_count]),
        per_layer=per_layer.per_layer_inputs(tensors, body, width) if width else None,
        logit_cap=layers.logit_cap(keys),
    )
    return replace(spec, notes=tensors.leftovers())


def _sliding(source: CheckpointSource, keys: FamilyKeys, layer_count: int) -> tuple[bool, ...]:
    if source.dialect is Dialect.GGUF:
        return sliding_pattern(keys, layer_count)
    # transformers lets the last layer attend to all, whatever the config says.
    return (*published_sliding(keys, layer_count)[:-1], False)


def _own_count(keys: FamilyKeys, sliding: Sequence[bool]) -> int:
    """How many layers own K and V; those after them need an earlier one of their kind."""
    shared = keys.count_or_zero("attention.shared_kv_layers")
    own = len(sliding) - shared
    if own < 1 or set(sliding[:own]) != set(sliding):
        wanted = f"fewer than {len(sliding)} layers, each kind of which has an earlier owner"
        raise keys.refusal("attention.shared_kv_layers", wanted)
    return own


def _kinds(
    source: CheckpointSource, keys: FamilyKeys, tensors: TensorNames, sliding: Sequence[bool]
) -> dict[bool, Kind]:
    """The kinds by whether they slide, full ones first; only those that some layer is of."""
    heads = heads_by_kind(source, keys, sliding)
    kinds: dict[bool, Kind] = {}
    for slides in sorted(heads):
        own = heads[slides]
        # The file bounds this tensor, so the rotary rule below is no longer than the file allows.
        tensors.checked(f"blk.{sliding.index(slides)}.attn_q_norm.weight", (own.dim,))
        kinds[slides] = Kind(
            group=len(kinds),
            head_count=own.count,
            kv_head_count=own.kv_count,
            head_dim=own.dim,
            scale=1.0,
            window=sliding_window(keys) if slides else None,
            rope=sliding_rope(keys, own.dim)
            if slides
            else proportional_rope(source, keys, own.dim),
        )
    if False in kinds and source.dialect is Dialect.GGUF:
        tensors.shape("rope_freqs.weight", 1)
    return kinds


def _groups(kinds: Mapping[bool, Kind], sliding: Sequence[bool]) -> tuple[PageGroupSpec, ...]:
    return tuple(kind.pages(sliding.count(slides)) for slides, kind in kinds.items())


def _layer(reading: _Reading, index: int, slides: bool, slot: int) -> LayerSpec:
    stem, tensors, body = f"blk.{index}", reading.tensors, reading.body
    scale, width = f"{stem}.layer_output_scale.weight", reading.per_layer_width
    return LayerSpec(
        mixer_norm=reading.norm(f"{stem}.attn_norm"),
        mixer=_attention(reading, index, slides, slot),
        branches=_branches(reading, index),
        mixer_post_norm=reading.norm(f"{stem}.post_attention_norm"),
        branches_post_norm=reading.norm(f"{stem}.post_ffw_norm"),
        per_layer=per_layer.per_layer_part(tensors, index, body, width) if width else None,
        scale=tensors.checked(scale, (1,)) if tensors.has(scale) else None,
    )


def _attention(reading: _Reading, index: int, slides: bool, slot: int) -> AttentionSpec:
    kind, tensors, eps = reading.kinds[slides], reading.tensors, reading.body.eps
    stem, hidden = f"blk.{index}.attn", reading.body.hidden
    query_norm = tensors.norm(f"{stem}_q_norm", kind.head_dim, eps)
    if index >= reading.own_count:
        sharing = sharing_attention(tensors, index, hidden, kind, slot)
        return replace(sharing, query_norm=query_norm)
    if reading.source.dialect is Dialect.GGUF:
        bare = not tensors.has(f"{stem}_v.weight")
    else:
        bare = reading.keys.flag("keys_are_values", False) and not slides
    return replace(
        attention(tensors, index, hidden, kind, slot, keys_are_values=bare),
        query_norm=query_norm,
        key_norm=tensors.norm(f"{stem}_k_norm", kind.head_dim, eps),
        value_norm=Norm(None, eps),
    )


def _branches(reading: _Reading, index: int) -> tuple[Branch, ...]:
    keys, tensors, body = reading.keys, reading.tensors, reading.body
    stem = f"blk.{index}"
    width = layers.inner_width(keys, index, body.layer_count)
    if width is not None and index >= reading.own_count and keys.flag("double_wide", False):
        width *= 2
    dense = Branch(
        reading.norm(f"{stem}.ffn_norm"),
        layers.feed_forward(tensors, index, body, Activation.GELU_TANH, width),
    )
    if not keys.flag("mixture", keys.count_or_zero("expert_count") > 0):
        return (dense,)
    mixed = Branch(
        reading.norm(f"{stem}.pre_ffw_norm_2"),
        _experts(reading, f"{stem}.ffn"),
        reading.norm(f"{stem}.post_ffw_norm_2"),
    )
    return replace(dense, post_norm=reading.norm(f"{stem}.post_ffw_norm_1")), mixed


def _experts(reading: _Reading, stem: str) -> ExpertsSpec:
    keys, tensors, body = reading.keys, reading.tensors, reading.body
    count, active = keys.count("expert_count"), keys.count("expert_used_count")
    if active > count:
        raise keys.refusal("expert_used_count", f"at most the {count} experts")
    stated = keys.has("expert_feed_forward_length")
    width = keys.count("expert_feed_forward_length") if stated else None
    if width is None:
        width = tensors.shape(f"{stem}_down_exps.weight", 3)[2]
    scale = tensors.checked(f"{stem}_gate_inp.scale", (body.hidden,))
    scales = f"{stem}_down_exps.scale"
    sizes = ExpertSizes(body.hidden, count, width, Activation.GELU_TANH)
    return ExpertsSpec(
        active_count=active,
        router=tensors.linear(f"{stem}_gate_inp", count, body.hidden),
        experts=experts(tensors, stem, sizes),
        router_norm=Norm(scale, body.eps),
        router_scale=float(body.hidden**-0.5),
        scales=tensors.checked(scales, (count,)) if tensors.has(scales) else None,
    )
