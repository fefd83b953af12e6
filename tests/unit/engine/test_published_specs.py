"""Published and MLX checkpoints of llama, SmolLM3 and gemma3: keys of every age, names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from engine.checkpoint.source import Dialect, MetadataValue
from engine.errors import CheckpointUnreadable, UnsupportedFamily
from engine.loading.head import without_copy
from engine.models import model_spec, rope
from engine.models.layers import OWN_HEAD_NOTE
from engine.models.spec import ModelSpec, Norm, RopeSpec, RopeStyle
from tests.helpers.memory_source import GEMMA3, LLAMA, MemorySource, random_arrays

EMBEDDING = "model.embed_tokens.weight"
GLOBALS = {"token_embd": "embed_tokens", "output_norm": "norm"}
PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
LLAMA_PARTS = PARTS | {"ffn_norm": "post_attention_layernorm"}
GEMMA_PARTS = PARTS | {
    "ffn_norm": "pre_feedforward_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
CONFIG: dict[str, MetadataValue] = {
    "hidden_size": 24,
    "intermediate_size": 36,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 10,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-5,
}
GEMMA_CONFIG = CONFIG | {"num_hidden_layers": 7, "sliding_window": 96}
ROPE = "rope_parameters."


def zeros(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.zeros(shape, np.float32)


def published(
    architecture: str,
    config: Mapping[str, Any],
    *,
    arrays: Mapping[str, Any] | None = None,
    body: str = "model.",
    dialect: Dialect = Dialect.PUBLISHED,
) -> MemorySource:
    """The tiny checkpoint of ``memory_source`` by published names."""
    gemma = architecture.startswith("gemma3")
    parts, keys = (GEMMA_PARTS, GEMMA3) if gemma else (LLAMA_PARTS, LLAMA)
    count = config.get("text_config.num_hidden_layers", config.get("num_hidden_layers"))
    keys = keys | {"block_count": count if count in range(10) else keys["block_count"]}
    named = {}
    for name, array in random_arrays("gemma3" if gemma else "llama", keys).items():
        pieces = name.split(".")
        if pieces[0] == "blk":
            named[f"{body}layers.{pieces[1]}.{parts[pieces[2]]}.weight"] = array
        else:
            named[f"{body}{GLOBALS[pieces[0]]}.weight"] = array
    found = MemorySource(architecture, {}, named | dict(arrays or {}))
    found.metadata = dict(config)
    found.dialect = dialect
    return found


def llama(**changed: Any) -> MemorySource:
    """A tied llama with some config keys changed, ``__`` standing for the dot; None leaves out."""
    return published("llama", changed_keys(CONFIG | {"tie_word_embeddings": True}, changed))


def gemma3(**changed: Any) -> MemorySource:
    """A gemma3 text model, as above."""
    return published("gemma3_text", changed_keys(GEMMA_CONFIG, changed))


def changed_keys(config: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    keys = dict(config) | {key.replace("__", "."): value for key, value in changed.items()}
    return {key: value for key, value in keys.items() if value is not None}


def rope_of(source: MemorySource, layer: int = 0) -> RopeSpec:
    found = model_spec(source).attentions[layer].rope
    assert found is not None
    return found


@pytest.mark.parametrize("dialect", [Dialect.PUBLISHED, Dialect.MLX])
def test_halves_of_a_head_turn_together_in_published_llamas(dialect: Dialect) -> None:
    source = llama()
    source.dialect = dialect
    spec = model_spec(source)
    assert spec.head == spec.embedding == "model.embed_tokens.weight"
    assert spec.attentions[1].query.weight == "model.layers.1.self_attn.q_proj.weight"
    assert rope_of(source) == RopeSpec(RopeStyle.HALVES, rope.plain(10_000.0, 10))
    assert spec.layers[0].mixer_norm == Norm("model.layers.0.input_layernorm.weight", 1e-5)
    assert spec.notes == ()


def test_a_llama_without_a_word_of_tying_has_a_head_of_its_own() -> None:
    own = {"lm_head.weight": zeros(53, 24)}
    assert model_spec(published("llama", CONFIG, arrays=own)).head == "lm_head.weight"
    with pytest.raises(CheckpointUnreadable, match=r"no tensor lm_head\.weight"):
        model_spec(published("llama", CONFIG))


@pytest.mark.parametrize("whole", [True, False, None])
@pytest.mark.parametrize("text", [True, False, None])
def test_the_text_part_or_the_whole_ties_the_head(whole: bool | None, text: bool | None) -> None:
    said = {"tie_word_embeddings": whole, "text_config.tie_word_embeddings": text}
    config = CONFIG | {key: value for key, value in said.items() if value is not None}
    if whole or text:
        spec = model_spec(published("llama", config))
        assert (spec.head, spec.notes) == (spec.embedding, ())
    else:
        with pytest.raises(CheckpointUnreadable, match=r"no tensor lm_head\.weight"):
            model_spec(published("llama", config))


def test_a_copy_of_the_embedding_is_no_head_of_its_own() -> None:
    embedding = np.random.default_rng(3).standard_normal((53, 24)).astype(np.float32)
    copy, other = embedding.copy(), embedding.copy()
    other[-1, -1] += 1.0
    tied = CONFIG | {"tie_word_embeddings": True}
    for head, wanted in ((copy, EMBEDDING), (other, "lm_head.weight")):
        source = published("llama", tied, arrays={EMBEDDING: embedding, "lm_head.weight": head})
        spec = model_spec(source)
        assert (spec.head, spec.notes) == ("lm_head.weight", (OWN_HEAD_NOTE,))
        settled = without_copy(spec, source)
        assert settled.head == wanted
        assert settled.notes == ((OWN_HEAD_NOTE,) if wanted == "lm_head.weight" else ())


def test_llama_defaults_are_those_of_its_class() -> None:
    left_out = ("num_key_value_heads", "head_dim", "rms_norm_eps", "max_position_embeddings")
    shapes = {
        f"model.layers.{layer}.self_attn.{part}_proj.weight": zeros(24, 24)
        for layer in range(2)
        for part in "qkvo"
    }
    keys = {key: value for key, value in CONFIG.items() if key not in left_out}
    keys |= {"tie_word_embeddings": True}
    spec = model_spec(published("llama", keys, arrays=shapes))
    attention = spec.attentions[0]
    assert (attention.head_count, attention.kv_head_count, attention.head_dim) == (3, 3, 8)
    assert (spec.context_tokens, spec.final_norm.eps) == (2048, 1e-6)


LLAMA3 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}


def named(place: str, rule: str, name: str = "rope_type") -> dict[str, Any]:
    """Scaling numbers as a config has them at one place."""
    return {f"{place}__{key}": value for key, value in {**LLAMA3, name: rule}.items()}


def test_rope_numbers_of_every_age_and_place_are_read() -> None:
    plain = rope.plain(500.0, 10)
    rule = rope.Llama3(factor=8.0, low=1.0, high=4.0, original_context=256)
    wanted = rope.llama3(plain, rule)
    old = {"rope_theta": 500.0}
    new = {"rope_parameters__rope_theta": 500.0}
    assert rope_of(llama(**old)).frequencies == rope_of(llama(**new)).frequencies == plain
    for keys in (
        {**old, **named("rope_scaling", "llama3")},
        {**old, **named("rope_scaling", "llama3", "type")},
        {**new, **named("rope_parameters", "llama3")},
    ):
        assert rope_of(llama(**keys)).frequencies == wanted
    linear = {**new, **named("rope_parameters", "linear")}
    assert rope_of(llama(**linear)).frequencies == rope.linear(plain, 8.0)
    default = {**new, **named("rope_parameters", "default")}
    assert rope_of(llama(**default)).frequencies == plain
    both = {**named("rope_scaling", "mrope", "type"), "rope_scaling__rope_type": "default", **old}
    assert rope_of(llama(**both)).frequencies == plain


def test_what_the_text_part_says_counts_before_the_whole() -> None:
    whole = CONFIG | {"hidden_size": 7, "rope_theta": 3.0, "tie_word_embeddings": True}
    text = {"text_config.hidden_size": 24, f"text_config.{ROPE}rope_theta": 500.0}
    spec = model_spec(published("llama", whole | text))
    assert spec.hidden == 24
    found = spec.attentions[0].rope
    assert found is not None and found.frequencies == rope.plain(500.0, 10)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("rope_scaling__high_freq_factor", 0.5, "more than low_freq_factor, 1.0"),
        ("rope_scaling__low_freq_factor", 0.0, r"rope_scaling\.low_freq_factor = 0\.0"),
        ("rope_scaling__low_freq_factor", None, r"no key llama\.rope\.scaling\.low_freq_factor"),
        ("num_attention_heads", 10**30, "num_attention_heads|q_proj"),
        ("num_attention_heads", "three", "num_attention_heads = 'three'"),
        ("num_hidden_layers", 10**9, "num_hidden_layers = 1000000000"),
        (
            "intermediate_size",
            35,
            r"mlp\.gate_proj\.weight has shape \(36, 24\); wanted \(35, 24\)",
        ),
        ("tie_word_embeddings", 1, "tie_word_embeddings = 1"),
    ],
)
def test_a_config_that_lies_is_named_in_its_own_words(key: str, value: Any, told: str) -> None:
    with pytest.raises(CheckpointUnreadable, match=told):
        model_spec(llama(**{**named("rope_scaling", "llama3"), key: value}))


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("hidden_act", "relu", "hidden_act = 'relu'; of this family only silu or swish runs"),
        ("num_local_experts", 8, "8 experts"),
        ("rope_scaling__rope_type", "longrope", "'longrope'"),
    ],
)
def test_llama_variants_that_do_not_run_are_refused(key: str, value: Any, told: str) -> None:
    with pytest.raises(UnsupportedFamily, match=told):
        model_spec(llama(**{key: value}))


def turning(source: MemorySource) -> list[bool]:
    return [attention.rope is not None for attention in model_spec(source).attentions]


def test_some_layers_of_smollm3_mark_no_positions() -> None:
    config = CONFIG | {"num_hidden_layers": 5}
    by_four = [True, True, True, False, True]
    assert turning(published("smollm3", config)) == by_four
    assert turning(published("smollm3", config | {"no_rope_layer_interval": 2})) == [
        True,
        False,
        True,
        False,
        True,
    ]
    listed = config | {"no_rope_layers": (0, 1, 1, 1, 0)}
    assert turning(published("smollm3", listed)) == [False, True, True, True, False]
    keys = LLAMA | {"block_count": 5}
    in_gguf = MemorySource("smollm3", keys, random_arrays("llama", keys))
    assert turning(in_gguf) == by_four
    assert rope_of(in_gguf).style is RopeStyle.PAIRS
    spec = model_spec(published("smollm3", config))
    assert (spec.family, spec.head) == ("smollm3", "model.embed_tokens.weight")
    assert [attention.slot for attention in spec.attentions] == list(range(5))


@pytest.mark.parametrize("listed", [(0, 1), (2,) * 5, "01110"])
def test_a_list_of_turning_layers_that_does_not_fit_is_refused(listed: MetadataValue) -> None:
    config = CONFIG | {"num_hidden_layers": 5, "no_rope_layers": listed}
    with pytest.raises(CheckpointUnreadable, match="no_rope_layers"):
        model_spec(published("smollm3", config))


def test_a_smollm3_that_slides_is_refused() -> None:
    with pytest.raises(UnsupportedFamily, match="use_sliding_window = True"):
        model_spec(published("smollm3", CONFIG | {"use_sliding_window": True}))


def full_layers(spec: ModelSpec) -> list[int]:
    return [index for index, layer in enumerate(spec.attentions) if layer.window is None]


@pytest.mark.parametrize("dialect", [Dialect.PUBLISHED, Dialect.MLX])
def test_gemma3_norms_are_stored_less_one_outside_of_gguf(dialect: Dialect) -> None:
    source = gemma3()
    source.dialect = dialect
    spec = model_spec(source)
    layer = spec.layers[0]
    attention = spec.attentions[0]
    norms = [spec.final_norm, layer.mixer_norm, layer.mixer_post_norm, layer.branches_post_norm]
    norms += [layer.branches[0].norm, attention.query_norm, attention.key_norm]
    assert {norm.offset for norm in norms if norm is not None} == {1.0}
    assert len([norm for norm in norms if norm is not None]) == 7
    keys = GEMMA3
    stored = MemorySource("gemma3", keys, random_arrays("gemma3", keys))
    assert model_spec(stored).final_norm.offset == 0.0


def test_gemma3_kinds_of_layers_are_told_in_three_ways() -> None:
    types = ["full_attention" if index in (1, 4) else "sliding_attention" for index in range(7)]
    assert full_layers(model_spec(gemma3())) == [5]
    assert full_layers(model_spec(gemma3(sliding_window_pattern=3))) == [2, 5]
    assert full_layers(model_spec(gemma3(layer_types=types))) == [1, 4]
    every = ["sliding_attention", "sliding_attention", "full_attention"] * 2 + ["sliding_attention"]
    both = gemma3(layer_types=every, sliding_window_pattern=3)
    assert full_layers(model_spec(both)) == [2, 5]
    with pytest.raises(CheckpointUnreadable, match="sliding_window_pattern = 3; wanted the layers"):
        model_spec(gemma3(layer_types=types, sliding_window_pattern=3))


def test_gemma3_ropes_are_told_by_kind_or_as_before() -> None:
    """The scaling of older configs is that of the layers that attend to all."""
    older = gemma3(
        rope_theta=3e5,
        rope_local_base_freq=700.0,
        rope_scaling__rope_type="linear",
        rope_scaling__factor=8.0,
    )
    newer = gemma3(
        rope_parameters__full_attention__rope_theta=3e5,
        rope_parameters__full_attention__rope_type="linear",
        rope_parameters__full_attention__factor=8.0,
        rope_parameters__sliding_attention__rope_theta=700.0,
        rope_parameters__sliding_attention__rope_type="default",
    )
    for source in (older, newer):
        assert rope_of(source, 5).frequencies == rope.linear(rope.plain(3e5, 10), 8.0)
        assert rope_of(source, 0).frequencies == rope.plain(700.0, 10)
    assert rope_of(gemma3(), 5).frequencies == rope.plain(1e6, 10)
    assert rope_of(gemma3(), 0).frequencies == rope.plain(1e4, 10)


def test_gemma3_scores_are_divided_as_the_config_says() -> None:
    scales = [
        model_spec(source).attentions[0].scale
        for source in (gemma3(), gemma3(query_pre_attn_scalar=168))
    ]
    assert scales == pytest.approx([256**-0.5, 168**-0.5])


def test_a_gemma3_with_pictures_leaves_most_to_its_class() -> None:
    """As the 4B is published: eight words of its text part, everything else by default."""
    config = {
        "text_config.hidden_size": 24,
        "text_config.intermediate_size": 36,
        "text_config.num_hidden_layers": 7,
        "text_config.sliding_window": 96,
        "text_config.rope_scaling.factor": 8.0,
        "text_config.rope_scaling.rope_type": "linear",
        "vision_config.hidden_size": 1152,
        "vision_config.num_attention_heads": 16,
    }
    body = "language_model.model."
    wide = {
        f"{body}layers.{layer}.self_attn.{part}_proj.weight": zeros(*shape)
        for layer in range(7)
        for part, shape in {
            "q": (8 * 256, 24),
            "k": (4 * 256, 24),
            "v": (4 * 256, 24),
            "o": (24, 8 * 256),
        }.items()
    }
    wide |= {
        f"{body}layers.{layer}.self_attn.{part}_norm.weight": zeros(256)
        for layer in range(7)
        for part in "qk"
    }
    other = {
        "vision_tower.vision_model.post_layernorm.bias": zeros(3),
        "multi_modal_projector.mm_soft_emb_norm.weight": zeros(3),
    }
    spec = model_spec(published("gemma3", config, arrays=wide | other, body=body))
    attention = spec.attentions[5]
    assert (attention.head_count, attention.kv_head_count, attention.head_dim) == (8, 4, 256)
    assert attention.rope is not None
    assert attention.rope.frequencies == rope.linear(rope.plain(1e6, 256), 8.0)
    assert spec.context_tokens == 131_072
    assert spec.notes == ("2 tensors of the file belong to its picture or sound part; not used.",)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_activation", "gelu"),
        ("attn_logit_softcapping", 50.0),
        ("use_bidirectional_attention", True),
        ("rope_parameters__sliding_attention__rope_type", "linear"),
    ],
)
def test_gemma3_variants_that_do_not_run_are_refused(key: str, value: Any) -> None:
    with pytest.raises(UnsupportedFamily, match=key.rpartition("__")[2]):
        model_spec(gemma3(**{key: value}))


@pytest.mark.parametrize("family", ["gemma2", "gemma3n", "gemma3n_text", "gemma4_assistant"])
def test_relatives_that_do_not_run_are_refused_by_name(family: str) -> None:
    with pytest.raises(UnsupportedFamily, match=rf"{family}.*supported: gemma3, gemma4, llama"):
        model_spec(published(family, CONFIG))
