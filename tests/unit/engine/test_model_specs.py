"""A checkpoint's keys and tensors become a spec, or a sentence that names what is wrong."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from engine.errors import CheckpointUnreadable, UnsupportedFamily
from engine.models import FAMILIES, model_spec, rope
from engine.models.spec import FeedForwardSpec, RopeStyle
from tests.helpers.memory_source import LLAMA, MemorySource, random_arrays, tiny_source


def zeros(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.zeros(shape, np.float32)


def test_a_llama_file_gives_its_geometry_and_a_tied_head() -> None:
    spec = model_spec(tiny_source())
    attention = spec.attentions[1]
    assert (spec.vocabulary, spec.hidden, spec.context_tokens) == (53, 24, 1024)
    assert spec.head == spec.embedding == "token_embd.weight"
    assert spec.embedding_scale == 1.0
    assert [layer.slot for layer in spec.attentions] == [0, 1]
    assert (attention.head_count, attention.kv_head_count, attention.head_dim) == (3, 1, 10)
    assert attention.scale == pytest.approx(10**-0.5)
    assert attention.rope is not None
    assert attention.rope.style is RopeStyle.PAIRS
    assert spec.groups[0].layer_count == 2
    assert attention.query.bias is None
    assert spec.notes == ()


def test_a_head_of_its_own_is_taken() -> None:
    spec = model_spec(tiny_source(arrays={"output.weight": zeros(53, 24)}))
    assert spec.head == "output.weight"


def test_biases_are_named_where_the_file_has_them() -> None:
    biases = {
        "blk.0.attn_q.bias": zeros(30),
        "blk.0.attn_output.bias": zeros(24),
        "blk.1.ffn_down.bias": zeros(24),
    }
    spec = model_spec(tiny_source(arrays=biases))
    first = spec.attentions[0]
    assert first.query.bias == "blk.0.attn_q.bias"
    assert first.output.bias == "blk.0.attn_output.bias"
    assert first.key is not None and first.key.bias is None
    body = spec.layers[1].branches[0].body
    assert isinstance(body, FeedForwardSpec)
    assert body.down.bias == "blk.1.ffn_down.bias"


@pytest.mark.parametrize(
    "key",
    [
        "block_count",
        "context_length",
        "embedding_length",
        "attention.head_count",
        "attention.layer_norm_rms_epsilon",
    ],
)
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(CheckpointUnreadable) as caught:
        model_spec(tiny_source(without=(key,)))
    assert caught.value.sentence == (f"tiny.gguf has no key llama.{key}, which this family needs.")


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("block_count", 0, "0"),
        ("block_count", 2**63, str(2**63)),
        ("block_count", True, "True"),
        ("embedding_length", "24", "'24'"),
        ("attention__head_count", [3, 2], "an array of 2"),
        ("attention__head_count", [], "an array of 0"),
        ("attention__head_count_kv", 2, "2"),
        ("attention__value_length", 12, "12"),
        ("attention__layer_norm_rms_epsilon", 0.0, "0.0"),
        ("attention__scale", float("inf"), "inf"),
        ("rope__freq_base", float("nan"), "nan"),
        ("rope__freq_base", "x" * 90, "'xxx"),
        ("rope__dimension_count", 12, "12"),
        ("rope__dimension_count", 5, "5"),
        ("rope__scaling__factor", -2.0, "-2.0"),
        ("rope__scaling__type", 3, "3"),
        ("expert_count", -1, "-1"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(key: str, value: object, shown: str) -> None:
    with pytest.raises(CheckpointUnreadable) as caught:
        model_spec(tiny_source(**{key: value}))  # type: ignore[arg-type]
    assert f"llama.{key.replace('__', '.')} = {shown}" in caught.value.sentence
    assert len(caught.value.sentence) < 200


def test_one_head_count_a_layer_is_read_where_all_are_the_same() -> None:
    assert model_spec(tiny_source(attention__head_count=[3, 3])).attentions[0].head_count == 3


@pytest.mark.parametrize(
    "tensor",
    ["token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight", "blk.1.ffn_gate.weight"],
)
def test_a_missing_tensor_is_named(tensor: str) -> None:
    with pytest.raises(CheckpointUnreadable, match=f"no tensor {tensor}"):
        model_spec(tiny_source(without=(tensor,)))


@pytest.mark.parametrize(
    ("tensor", "shape", "wanted"),
    [
        ("blk.1.attn_k.weight", (9, 24), "(10, 24)"),
        ("blk.1.ffn_up.weight", (24, 36), "(36, 24)"),
        ("blk.0.attn_norm.weight", (24, 1), "1 dimensions"),
        ("blk.0.attn_q.bias", (10,), "(30)"),
        ("output.weight", (52, 24), "(53, 24)"),
    ],
)
def test_a_misshapen_tensor_is_named_with_both_shapes(
    tensor: str, shape: tuple[int, ...], wanted: str
) -> None:
    with pytest.raises(CheckpointUnreadable) as caught:
        model_spec(tiny_source(arrays={tensor: zeros(*shape)}))
    found = ", ".join(map(str, shape))
    assert f"tensor {tensor} has shape ({found}); wanted {wanted}." in caught.value.sentence


def test_an_unknown_family_is_refused_with_what_is_supported() -> None:
    with pytest.raises(UnsupportedFamily, match=r"'mamba'; supported: gemma3, .*llama, "):
        model_spec(MemorySource("mamba", LLAMA, {}))


def test_experts_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedFamily, match="8 experts"):
        model_spec(tiny_source(expert_count=8))


def test_a_tensor_that_nothing_uses_is_refused_by_name() -> None:
    """Left out in silence it would make another model than the file holds."""
    with pytest.raises(UnsupportedFamily, match=r"blk\.0\.attn_q\.scale"):
        model_spec(tiny_source(arrays={"blk.0.attn_q.scale": zeros(1)}))


def test_a_picture_part_in_the_same_file_is_noted() -> None:
    spec = model_spec(tiny_source(arrays={"v.patch_embd.weight": zeros(3, 4)}))
    assert spec.notes == ("1 tensor of the file belongs to its picture or sound part; not used.",)


def test_a_derived_tensor_of_old_files_is_ignored() -> None:
    assert model_spec(tiny_source(arrays={"blk.0.attn_rot_embd": zeros(5)})).notes == ()


def frequencies(source: MemorySource) -> tuple[float, ...]:
    found = model_spec(source).attentions[0].rope
    assert found is not None
    return found.frequencies


def test_rope_keys_of_every_age_are_read() -> None:
    plain = rope.plain(10000.0, 10)
    quarter = pytest.approx([frequency / 4 for frequency in plain])
    assert frequencies(tiny_source(without=("rope.freq_base",))) == plain
    assert frequencies(tiny_source(rope__scale_linear=4.0)) == quarter
    assert frequencies(tiny_source(rope__scaling__factor=4.0)) == quarter
    none = tiny_source(rope__scaling__type="none", rope__scaling__factor=4.0)
    assert frequencies(none) == plain
    assert frequencies(tiny_source(rope__dimension_count=6)) == rope.plain(10000.0, 6)
    divisors = np.array([1, 2, 4, 8, 8], np.float32)
    slowed = frequencies(tiny_source(arrays={"rope_freqs.weight": divisors}))
    assert slowed == rope.divided(plain, divisors.tolist())


def test_yarn_keys_are_read() -> None:
    source = tiny_source(
        rope__scaling__type="yarn",
        rope__scaling__factor=4.0,
        rope__scaling__original_context_length=256,
    )
    found = model_spec(source).attentions[0].rope
    assert found is not None
    assert found.magnitude == rope.yarn_magnitude(4.0)
    rule = rope.Yarn(base=10000.0, factor=4.0, original_context=256)
    assert found.frequencies == rope.yarn(rope.plain(10000.0, 10), rule)


def test_an_unknown_rope_scaling_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFamily, match="'longrope'"):
        model_spec(tiny_source(rope__scaling__type="longrope"))


@pytest.mark.parametrize("divisors", [[1, 1, 1, 1], [1, 1, 0, 1, 1], [1, 1, np.nan, 1, 1]])
def test_bad_rope_divisors_are_refused(divisors: list[float]) -> None:
    array = np.array(divisors, np.float32)
    with pytest.raises(CheckpointUnreadable, match=r"rope_freqs\.weight"):
        model_spec(tiny_source(arrays={"rope_freqs.weight": array}))


def full_layers(**changed: object) -> list[int]:
    spec = model_spec(tiny_source("gemma3", **changed))  # type: ignore[arg-type]
    return [i for i, layer in enumerate(spec.attentions) if layer.window is None]


def test_gemma3_layers_slide_but_each_sixth_unless_the_file_says_otherwise() -> None:
    assert full_layers() == [5]
    assert full_layers(attention__sliding_window_pattern=3) == [2, 5]
    assert full_layers(attention__sliding_window_pattern=1) == list(range(7))
    pattern = [True, False, True, True, True, True, False]
    assert full_layers(attention__sliding_window_pattern=pattern) == [1, 6]
    assert full_layers(attention__sliding_window=0) == list(range(7))
    assert full_layers(without=("attention.sliding_window",)) == list(range(7))


@pytest.mark.parametrize("pattern", [[True] * 6, [True] * 8, [2] * 7, 0, "six"])
def test_a_gemma3_pattern_that_does_not_fit_is_refused(pattern: object) -> None:
    with pytest.raises(CheckpointUnreadable, match="sliding_window_pattern"):
        full_layers(attention__sliding_window_pattern=pattern)


def test_a_window_longer_than_positions_can_be_is_refused() -> None:
    assert model_spec(tiny_source("gemma3", attention__sliding_window=2**31 - 1)).groups[1].window
    with pytest.raises(CheckpointUnreadable, match="at most 2147483647 rows"):
        model_spec(tiny_source("gemma3", attention__sliding_window=2**31))


def test_gemma3_kinds_have_groups_slots_and_ropes_of_their_own() -> None:
    spec = model_spec(tiny_source("gemma3", rope__freq_base=1e6, rope__scaling__factor=8.0))
    sliding, full = spec.attentions[6], spec.attentions[5]
    assert [group.window for group in spec.groups] == [None, 96]
    assert [group.layer_count for group in spec.groups] == [1, 6]
    assert (full.group, full.slot) == (0, 0)
    assert (sliding.group, sliding.slot) == (1, 5)
    assert full.rope is not None
    assert sliding.rope is not None
    assert full.rope.frequencies == rope.linear(rope.plain(1e6, 10), 8.0)
    assert sliding.rope.frequencies == rope.plain(10000.0, 10)
    assert spec.embedding_scale == pytest.approx(24**0.5)
    base = model_spec(tiny_source("gemma3", rope__freq_base_swa=500.0)).attentions[0].rope
    assert base is not None
    assert base.frequencies == rope.plain(500.0, 10)


def test_gemma3_scale_follows_the_head_but_in_the_largest_model() -> None:
    assert model_spec(tiny_source("gemma3")).attentions[0].scale == pytest.approx(10**-0.5)
    explicit = model_spec(tiny_source("gemma3", attention__scale=0.25))
    assert explicit.attentions[0].scale == 0.25
    keys = LLAMA | {"block_count": 62, "attention.head_count": 4, "embedding_length": 24}
    large = MemorySource("gemma3", keys, random_arrays("gemma3", keys))
    assert model_spec(large).attentions[0].scale == pytest.approx((24 // 4) ** -0.5)


def test_a_gemma3_logit_cap_is_carried() -> None:
    assert model_spec(tiny_source("gemma3")).logit_cap is None
    assert model_spec(tiny_source("gemma3", final_logit_softcapping=0.0)).logit_cap is None
    assert model_spec(tiny_source("gemma3", final_logit_softcapping=30.0)).logit_cap == 30.0
    with pytest.raises(CheckpointUnreadable, match="final_logit_softcapping = -1"):
        model_spec(tiny_source("gemma3", final_logit_softcapping=-1.0))


def test_reading_a_spec_loads_no_torch() -> None:
    modules = ", ".join(FAMILIES.values())
    code = f"import sys, engine.models, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
