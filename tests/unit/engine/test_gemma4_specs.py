"""gemma4 checkpoints of every dialect become one spec, or a sentence that names what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.checkpoint.source import Dialect
from engine.errors import CheckpointUnreadable, UnsupportedFamily
from engine.models import model_spec, rope
from engine.models.spec import (
    AttentionSpec,
    ExpertsSpec,
    FeedForwardSpec,
    LayerSpec,
    Linear,
    ModelSpec,
    Norm,
    RopeStyle,
)
from tests.helpers.gemma4_sources import (
    ACTIVE,
    EXPERTS,
    FULL_HEAD_DIM,
    FULL_KV_HEADS,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INNER,
    KV_HEADS,
    PER_LAYER,
    VOCABULARY,
    WIDTH,
    WINDOW,
    Tiny,
    divisors,
    source,
)

DIALECTS = tuple(Dialect)
KINDS = {
    "dense": Tiny(),
    "bare": Tiny(bare=True),
    "per layer": Tiny(per_layer=True),
    "sharing": Tiny("SSFSFSSF", shared=3, per_layer=True, wide=True),
    "mixture": Tiny(bare=True, mixture=True),
    "everything": Tiny("SFSFSF", shared=2, bare=True, mixture=True, per_layer=True, wide=True),
    "full only": Tiny("FFF"),
}
PREFIX = "model.language_model.layers"


def zeros(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.zeros(shape, np.float32)


def mixers(spec: ModelSpec) -> list[AttentionSpec]:
    return list(spec.attentions)


def without_names(spec: ModelSpec) -> str:
    """The whole spec but for tensors' names and how experts lie in their stacks."""

    def unnamed(part: Any) -> Any:
        match part:
            case Linear():
                return Linear("", part.bias and "")
            case Norm():
                return replace(part, weight=part.weight and "")
            case str():
                return ""
            case tuple():
                return tuple(unnamed(entry) for entry in part)
        if hasattr(part, "__dataclass_fields__"):
            return replace(
                part, **{name: unnamed(getattr(part, name)) for name in part.__dataclass_fields__}
            )
        return part

    return repr(unnamed(spec))


@pytest.mark.parametrize("kind", KINDS)
def test_every_dialect_gives_the_same_model(kind: str) -> None:
    """But for the frequencies, where GGUF's divisors are float32."""
    found = [model_spec(source(KINDS[kind], dialect)) for dialect in DIALECTS]
    assert {spec.notes for spec in found} == {()}
    assert len({without_names(spec) for spec in found}) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_kinds_have_heads_groups_and_ropes_of_their_own(dialect: Dialect) -> None:
    spec = model_spec(source(KINDS["bare"], dialect))
    full, sliding = mixers(spec)[2], mixers(spec)[3]
    assert [(g.window, g.layer_count, g.kv_head_count, g.head_dim) for g in spec.groups] == [
        (None, 2, FULL_KV_HEADS, FULL_HEAD_DIM),
        (WINDOW, 3, KV_HEADS, HEAD_DIM),
    ]
    assert [(m.group, m.slot) for m in mixers(spec)] == [(1, 0), (1, 1), (0, 0), (1, 2), (0, 1)]
    assert (full.head_count, full.head_dim, full.window) == (HEADS, FULL_HEAD_DIM, None)
    assert (sliding.head_count, sliding.head_dim, sliding.window) == (HEADS, HEAD_DIM, WINDOW)
    assert {m.scale for m in mixers(spec)} == {1.0}
    assert full.rope is not None and sliding.rope is not None
    assert {full.rope.style, sliding.rope.style} == {RopeStyle.HALVES}
    assert sliding.rope.frequencies == rope.plain(1e4, HEAD_DIM)
    assert full.rope.frequencies == (1.0, 1e6 ** (-2 / FULL_HEAD_DIM), *[0.0] * 6)
    assert spec.embedding_scale == pytest.approx(HIDDEN**0.5)
    assert spec.logit_cap == 30.0
    assert spec.head == spec.embedding


@pytest.mark.parametrize("dialect", DIALECTS)
def test_full_layers_may_make_values_of_their_keys(dialect: Dialect) -> None:
    spec = model_spec(source(KINDS["bare"], dialect))
    assert [m.value is None for m in mixers(spec)] == [False, False, True, False, True]
    assert {m.value_norm for m in mixers(spec)} == {Norm(None, 1e-6)}
    assert all(m.key_norm is not None and m.query_norm is not None for m in mixers(spec))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_late_layers_read_the_last_owner_of_their_kind(dialect: Dialect) -> None:
    """SSFSF own, SSF share: sliding layers read the third owner (layer 3), full ones layer 4."""
    spec = model_spec(source(KINDS["sharing"], dialect))
    assert [group.layer_count for group in spec.groups] == [2, 3]
    shared = mixers(spec)[5:]
    assert [(m.group, m.slot) for m in shared] == [(1, 2), (1, 2), (0, 1)]
    assert [m.owns_kv for m in mixers(spec)] == [True] * 5 + [False] * 3
    for mixer in shared:
        assert (mixer.value, mixer.key_norm, mixer.value_norm) == (None, None, None)
        assert mixer.query_norm is not None and mixer.rope is not None
    assert [dense(layer).width for layer in spec.layers] == [INNER] * 5 + [2 * INNER] * 3


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_sharing_layers_still_hold_of_keys_is_left_alone(dialect: Dialect) -> None:
    names = {
        Dialect.GGUF: "blk.7.attn_{}.weight",
        Dialect.PUBLISHED: f"{PREFIX}.7.self_attn.{{}}_proj.weight",
        Dialect.MLX: "language_model.model.layers.7.self_attn.{}_proj.weight",
    }
    more = {names[dialect].format(part): zeros(5, 7) for part in "kv"}
    if dialect is Dialect.PUBLISHED:
        more |= {f"{PREFIX}.7.self_attn.{part}_norm.weight": zeros(3) for part in "kv"}
    spec = model_spec(source(KINDS["sharing"], dialect, arrays=more))
    assert spec == model_spec(source(KINDS["sharing"], dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_layer_may_have_an_input_of_its_own(dialect: Dialect) -> None:
    spec = model_spec(source(KINDS["per layer"], dialect))
    inputs = spec.per_layer
    assert inputs is not None
    assert inputs.width == PER_LAYER
    assert inputs.embedding_scale == pytest.approx(PER_LAYER**0.5)
    assert inputs.projection_scale == pytest.approx(HIDDEN**-0.5)
    assert inputs.scale == pytest.approx(2**-0.5)
    assert all(layer.per_layer is not None and layer.scale for layer in spec.layers)
    assert model_spec(source(KINDS["dense"], dialect)).per_layer is None


def test_the_embedding_of_layers_may_have_more_rows_than_the_tokenizer() -> None:
    """A converter cuts the main embedding's rows, and not these."""
    rows = zeros(VOCABULARY + 9, 5 * PER_LAYER)
    more = {"per_layer_token_embd.weight": rows}
    assert model_spec(source(KINDS["per layer"], Dialect.GGUF, arrays=more)).per_layer is not None
    fewer = {"per_layer_token_embd.weight": rows[: VOCABULARY - 1]}
    with pytest.raises(CheckpointUnreadable, match=r"\(52, 50\); wanted \(53, 50\)"):
        model_spec(source(KINDS["per layer"], Dialect.GGUF, arrays=fewer))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_experts_stand_beside_the_dense_branch(dialect: Dialect) -> None:
    layer = model_spec(source(KINDS["mixture"], dialect)).layers[1]
    first, second = layer.branches
    body = second.body
    assert isinstance(first.body, FeedForwardSpec) and isinstance(body, ExpertsSpec)
    assert layer.branches_post_norm is not None
    assert first.post_norm is not None and second.post_norm is not None
    assert first.norm != second.norm
    assert (len(body.experts), body.active_count) == (EXPERTS, ACTIVE)
    assert body.router_norm is not None and body.router_norm.weight is not None
    assert body.router_scale == pytest.approx(HIDDEN**-0.5)
    assert body.scales is not None
    assert {expert.width for expert in body.experts} == {WIDTH}


def test_fused_experts_are_cut_gate_before_up() -> None:
    body = model_spec(source(KINDS["mixture"])).layers[0].branches[1].body
    assert isinstance(body, ExpertsSpec)
    third = body.experts[3]
    assert third.gate == Linear(f"{PREFIX}.0.experts.gate_up_proj", rows=((6 * WIDTH, WIDTH),))
    assert third.up == Linear(f"{PREFIX}.0.experts.gate_up_proj", rows=((7 * WIDTH, WIDTH),))
    assert third.down == Linear(f"{PREFIX}.0.experts.down_proj", rows=((3 * HIDDEN, HIDDEN),))


def test_experts_of_gguf_may_have_gate_and_up_apart() -> None:
    stacks = {
        f"blk.{layer}.ffn_{part}_exps.weight": zeros(EXPERTS, WIDTH, HIDDEN)
        for layer in range(5)
        for part in ("gate", "up")
    }
    fused = tuple(f"blk.{layer}.ffn_gate_up_exps.weight" for layer in range(5))
    found = model_spec(source(KINDS["mixture"], Dialect.GGUF, arrays=stacks, without=fused))
    body = found.layers[4].branches[1].body
    assert isinstance(body, ExpertsSpec)
    assert body.experts[2].up == Linear("blk.4.ffn_up_exps.weight", rows=((2 * WIDTH, WIDTH),))


def test_projections_fused_in_gguf_are_parted_by_rows() -> None:
    query, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    fused = {"blk.0.attn_qkv.weight": zeros(query + 2 * kv, HIDDEN)}
    apart = tuple(f"blk.0.attn_{part}.weight" for part in "qkv")
    found = source(KINDS["dense"], Dialect.GGUF, arrays=fused, without=apart)
    mixer = mixers(model_spec(found))[0]
    assert mixer.query == Linear("blk.0.attn_qkv.weight", rows=((0, query),))
    assert mixer.key == Linear("blk.0.attn_qkv.weight", rows=((query, kv),))
    assert mixer.value == Linear("blk.0.attn_qkv.weight", rows=((query + kv, kv),))


def test_a_sharing_layer_takes_its_query_out_of_a_fused_projection() -> None:
    query, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    fused = {"blk.6.attn_qkv.weight": zeros(query + 2 * kv, HIDDEN)}
    found = source(KINDS["sharing"], Dialect.GGUF, arrays=fused, without=("blk.6.attn_q.weight",))
    mixer = mixers(model_spec(found))[6]
    assert mixer.query == Linear("blk.6.attn_qkv.weight", rows=((0, query),))
    assert not mixer.owns_kv


def test_counts_of_gguf_may_be_given_once_or_for_each_layer() -> None:
    once = source(KINDS["dense"], Dialect.GGUF, metadata={"attention.head_count_kv": KV_HEADS})
    each = source(KINDS["dense"], Dialect.GGUF, metadata={"attention.head_count": [HEADS] * 5})
    assert model_spec(once) == model_spec(each) == model_spec(source(KINDS["dense"], Dialect.GGUF))


def test_layers_override_their_heads_one_by_one() -> None:
    """As transformers saves it: no word of the full layers' own numbers."""
    overrides: dict[str, Any] = {
        f"per_layer_config.{layer}.{key}": value
        for layer in (2, 4)
        for key, value in {"head_dim": FULL_HEAD_DIM, "num_key_value_heads": FULL_KV_HEADS}.items()
    }
    said = ("global_head_dim", "num_global_key_value_heads")
    found = source(KINDS["bare"], metadata=overrides, without=said)
    assert model_spec(found) == model_spec(source(KINDS["bare"]))
    with pytest.raises(UnsupportedFamily, match=r"per_layer_config\.2\.intermediate_size = 9"):
        odd = {**overrides, "per_layer_config.2.intermediate_size": 9}
        model_spec(source(KINDS["bare"], metadata=odd))


def test_what_published_configs_leave_out_is_the_class_default() -> None:
    said = (
        "layer_types",
        "rms_norm_eps",
        "tie_word_embeddings",
        "max_position_embeddings",
        "attention_k_eq_v",
        "num_kv_shared_layers",
        "enable_moe_block",
        "final_logit_softcapping",
        "hidden_activation",
        *(f"rope_parameters.full_attention.{key}" for key in ("rope_type", "rope_theta")),
        "rope_parameters.full_attention.partial_rotary_factor",
        "rope_parameters.sliding_attention.rope_type",
        "rope_parameters.sliding_attention.rope_theta",
    )
    tiny = Tiny("SSSSSFF")
    found = model_spec(source(tiny, without=said))
    told = model_spec(source(tiny))
    assert found.logit_cap is None
    assert found.context_tokens == 131_072
    assert replace(found, logit_cap=30.0, context_tokens=1024) == told
    unified = model_spec(source(tiny, without=said, name="gemma4_unified"))
    assert (unified.family, unified.context_tokens) == ("gemma4_unified", 262_144)


def test_the_last_layer_of_a_published_model_is_full_whatever_its_config_says() -> None:
    types = ["sliding_attention"] * 5
    tiny = Tiny("SSSSF")
    assert model_spec(source(tiny, metadata={"layer_types": types})) == model_spec(source(tiny))


def test_a_head_of_its_own_counts_where_there_is_one() -> None:
    own = {"lm_head.weight": zeros(VOCABULARY, HIDDEN)}
    assert model_spec(source(KINDS["dense"], arrays=own)).head == "lm_head.weight"
    apart = {"tie_word_embeddings": False}
    assert model_spec(source(KINDS["dense"], arrays=own, metadata=apart)).head == "lm_head.weight"
    with pytest.raises(CheckpointUnreadable, match=r"no tensor lm_head\.weight"):
        model_spec(source(KINDS["dense"], metadata=apart))


def test_picture_and_sound_parts_are_noted() -> None:
    parts = (
        "model.vision_tower.patch_embedder.weight",
        "model.vision_embedder.patch_dense.weight",
        "model.audio_tower.x",
        "model.embed_vision.embedding_projection.weight",
        "model.embed_audio.embedding_projection.weight",
    )
    spec = model_spec(source(KINDS["dense"], arrays={part: zeros(2) for part in parts}))
    assert spec.notes == ("5 tensors of the file belong to its picture or sound part; not used.",)


GGUF_LIES: dict[str, tuple[Any, str]] = {
    "block_count": (6, "6 truth values"),
    "block_count ": (2**62, "block_count"),
    "attention.sliding_window_pattern": ([True] * 4, "an array of 4"),
    "attention.sliding_window_pattern ": (3, "sliding_window_pattern = 3"),
    "attention.sliding_window": (0, "sliding_window = 0"),
    "attention.sliding_window ": (2**40, "at most 2147483647 rows"),
    "attention.head_count_kv": ([3, 3, 2, 2, 2], "the same heads in all sliding layers; 3 differs"),
    "attention.head_count_kv ": ([3, 3], "an array of 2"),
    "attention.head_count_kv  ": (4, "a divisor of the 6 heads"),
    "attention.head_count": (2**40, "attention.head_count_kv"),
    "attention.head_count ": (9, "blk.0.attn_q_norm.weight|blk.0.attn_q.weight"),
    "attention.key_length": (15, "key_length = 15"),
    "attention.key_length ": (2**50, "wanted"),
    "attention.value_length_swa": (10, "value_length_swa = 10"),
    "attention.shared_kv_layers": (5, "shared_kv_layers = 5"),
    "attention.shared_kv_layers ": (4, "shared_kv_layers = 4"),
    "attention.shared_kv_layers  ": (-1, "shared_kv_layers = -1"),
    "rope.dimension_count_swa": (7, "dimension_count_swa = 7"),
    "rope.dimension_count": (32, "dimension_count = 32"),
    "rope.dimension_count ": (12, "rope_freqs.weight"),
    "rope.freq_base_swa": (0.0, "freq_base_swa = 0.0"),
    "feed_forward_length": ([36, 36, 36, 36, 35], "blk.4.ffn_gate.weight"),
    "feed_forward_length ": ([36], "an array of 1"),
    "embedding_length_per_layer_input": (7, "blk.0.inp_gate"),
    "final_logit_softcapping": (float("nan"), "final_logit_softcapping = nan"),
}


@pytest.mark.parametrize("key", GGUF_LIES)
def test_a_key_that_lies_is_named(key: str) -> None:
    """Trailing blanks only tell cases of one key apart."""
    value, told = GGUF_LIES[key]
    with pytest.raises(CheckpointUnreadable, match=told):
        model_spec(source(KINDS["dense"], Dialect.GGUF, metadata={key.strip(): value}))


PUBLISHED_LIES: dict[str, tuple[Any, str]] = {
    "num_experts": (6, r"router\.proj\.weight has shape \(5, 24\); wanted \(6, 24\)"),
    "num_experts ": (2**60, "router"),
    "top_k_experts": (6, "top_k_experts = 6; wanted at most the 5 experts"),
    "moe_intermediate_size": (15, r"gate_up_proj has shape \(5, 28, 24\); wanted \(5, 30, 24\)"),
    "global_head_dim": (2**61, "wanted"),
    "head_dim": (9, "head_dim = 9"),
    "num_key_value_heads": (1.5, "num_key_value_heads = 1.5"),
    "num_global_key_value_heads": (4, "a divisor of the 6 heads"),
    "attention_k_eq_v": (False, r"self_attn\.k_proj\.weight"),
    "attention_k_eq_v ": ("yes", "attention_k_eq_v = 'yes'"),
    "layer_types": (["linear_attention"] * 5, "layer_types = an array of 5"),
    "layer_types ": (["full_attention"] * 4, "layer_types = an array of 4"),
    "layer_types  ": ("full_attention", "layer_types = 'full_attention'"),
    "intermediate_size": (37, r"mlp\.gate_proj\.weight"),
    "rope_parameters.full_attention.partial_rotary_factor": (0.0, "partial_rotary_factor = 0.0"),
    "rope_parameters.full_attention.rope_theta": (-1.0, "rope_theta = -1.0"),
}


@pytest.mark.parametrize("key", PUBLISHED_LIES)
def test_a_config_that_lies_is_named_in_its_own_words(key: str) -> None:
    value, told = PUBLISHED_LIES[key]
    with pytest.raises(CheckpointUnreadable, match=told):
        model_spec(source(KINDS["mixture"], metadata={key.strip(): value}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_activation", "gelu"),
        ("use_bidirectional_attention", "all"),
        ("rope_parameters.full_attention.rope_type", "dynamic"),
        ("rope_parameters.sliding_attention.rope_type", "linear"),
    ],
)
def test_variants_that_do_not_run_are_refused_by_name(key: str, value: str) -> None:
    with pytest.raises(UnsupportedFamily, match=value):
        model_spec(source(KINDS["dense"], metadata={key: value}))
    seen = {"use_bidirectional_attention": "vision"}
    assert model_spec(source(KINDS["dense"], metadata=seen)).notes == ()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_tensor_of_a_layer_is_needed(dialect: Dialect) -> None:
    """Each left out alone is missed by name, but for those that a model may lack."""
    tiny = KINDS["everything"]
    optional = ("layer_scalar", "layer_output_scale", "per_expert_scale", "ffn_down_exps.scale")
    for name in source(tiny, dialect).tensors:
        if name.endswith(optional) or any(part in name for part in optional):
            assert model_spec(source(tiny, dialect, without=(name,))) is not None
        elif not (dialect is Dialect.GGUF and name.endswith("attn_v.weight")):
            with pytest.raises(CheckpointUnreadable, match=name.split(".")[-2]):
                model_spec(source(tiny, dialect, without=(name,)))


@pytest.mark.parametrize("bad", [divisors()[:7], np.full(8, np.inf, np.float32)])
def test_bad_rope_divisors_are_refused(bad: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    with pytest.raises(CheckpointUnreadable, match=r"rope_freqs\.weight"):
        model_spec(source(KINDS["dense"], Dialect.GGUF, arrays={"rope_freqs.weight": bad}))


def test_a_model_whose_sharing_layers_have_no_owner_is_refused() -> None:
    with pytest.raises(CheckpointUnreadable, match=r"num_kv_shared_layers = 2"):
        model_spec(source(Tiny("SSSF", shared=2)))


def dense(layer: LayerSpec) -> FeedForwardSpec:
    body = layer.branches[0].body
    assert isinstance(body, FeedForwardSpec)
    return body
