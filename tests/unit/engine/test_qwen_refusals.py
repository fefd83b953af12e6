"""What a Qwen reader refuses: each sentence names the file, the key or tensor, and numbers."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from engine.checkpoint.source import Dialect, MetadataValue
from engine.errors import CheckpointError, CheckpointUnreadable, UnsupportedFamily
from engine.models import model_spec
from engine.models.layers import OWN_HEAD_NOTE
from tests.helpers import qwen_sources as qwen
from tests.helpers.memory_source import MemorySource
from tests.helpers.qwen_sources import DENSE, MIXED, NEXT

HUGE = 1 << 40


def zeros(*shape: int) -> qwen.Array:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("family", "key", "value", "wanted"),
    [
        (DENSE, "block_count", HUGE, "at most the file's"),
        (DENSE, "nextn_predict_layers", 3, "fewer than the 3 blocks"),
        (DENSE, "attention.head_count", 5, "a divisor of the 5 heads"),
        (DENSE, "attention.head_count", HUGE * 3, r"blk\.1\.attn_q\.weight has shape \(192, 24\)"),
        (DENSE, "attention.key_length", 15, "an even number"),
        (DENSE, "attention.key_length", HUGE, f"the same as the key length, {HUGE}"),
        (DENSE, "rope.dimension_count", 18, "an even number of at most 16"),
        (DENSE, "rope.dimension_count", 3, "an even number of at most 16"),
        (DENSE, "ssm.group_count", 4, "a multiple of the 4 key heads"),
        (DENSE, "ssm.group_count", 3, r"blk\.0\.attn_qkv\.weight has shape \(92, 24\)"),
        (DENSE, "ssm.time_step_rank", 4, r"blk\.0\.attn_qkv|blk\.0\.ssm"),
        (DENSE, "ssm.time_step_rank", HUGE, "a multiple of the"),
        (DENSE, "ssm.inner_size", 61, "a multiple of the 6 value heads"),
        (DENSE, "ssm.inner_size", 6 * HUGE, r"blk\.0\.attn_qkv\.weight has shape"),
        (DENSE, "ssm.state_size", 9, r"blk\.0\.attn_qkv\.weight has shape"),
        (DENSE, "ssm.conv_kernel", 1, "2 or more"),
        (DENSE, "ssm.conv_kernel", HUGE, r"blk\.0\.ssm_conv1d\.weight has shape \(92, 4\)"),
        (DENSE, "feed_forward_length", 35, r"blk\.0\.ffn_gate\.weight has shape \(36, 24\)"),
        (DENSE, "attention.recurrent_layers", (True, False), "one entry for each of the 3"),
        (DENSE, "attention.recurrent_layers", (1.5, False, True), "for each layer"),
        (DENSE, "attention.recurrent_layers", (True, True, True), "both kinds"),
        (DENSE, "attention.recurrent_layers", (False, False, False), "both kinds"),
        (DENSE, "attention.recurrent_layers", 7, "one entry for each"),
        (DENSE, "attention.recurrent_layers", "abc", "for each layer"),
        (MIXED, "expert_count", 6, r"blk\.0\.ffn_gate_inp\.weight has shape \(5, 24\)"),
        (MIXED, "expert_count", HUGE, "at most 43690"),
        (MIXED, "expert_used_count", 6, "at most the 5 experts"),
        (MIXED, "expert_feed_forward_length", 15, r"ffn_gate_exps\.weight has shape \(5, 14, 24\)"),
        (MIXED, "expert_feed_forward_length", HUGE, r"ffn_gate_exps\.weight has shape"),
        (MIXED, "expert_shared_feed_forward_length", 21, r"ffn_gate_shexp\.weight has shape"),
    ],
)
def test_a_number_that_the_tensors_belie_is_named(
    family: str, key: str, value: MetadataValue, wanted: str
) -> None:
    source = qwen.source(family, Dialect.GGUF, metadata={key: value})
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointUnreadable, match=wanted) as caught:
            model_spec(source)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert "tiny.gguf" in caught.value.sentence
    assert len(caught.value.sentence) < 250


@pytest.mark.parametrize(
    ("family", "key", "value", "wanted"),
    [
        (DENSE, "layer_types", ("full_attention", "mamba", "mamba"), "linear_attention or full"),
        (DENSE, "layer_types", ("full_attention",), "one entry for each of the 3"),
        (DENSE, "layer_types", (("x",), 1, 2), "for each layer"),
        (DENSE, "linear_value_head_dim", 12, r"in_proj_qkv\.weight has shape \(92, 24\)"),
        (DENSE, "rope_parameters.partial_rotary_factor", 1.5, "at most 1"),
        (DENSE, "rope_parameters.partial_rotary_factor", 0.2, "an even number of at most 16"),
        (DENSE, "rope_parameters.rope_theta", -1.0, "a number above 0"),
        (NEXT, "mlp_only_layers", ("0",), "whole numbers"),
        (NEXT, "decoder_sparse_step", 0, "a whole number of 1 or more"),
    ],
)
def test_a_config_that_makes_no_sense_is_named_by_its_own_key(
    family: str, key: str, value: MetadataValue, wanted: str
) -> None:
    with pytest.raises(CheckpointUnreadable, match=wanted) as caught:
        model_spec(qwen.source(family, metadata={key: value}))
    assert key in caught.value.sentence or "tensor" in caught.value.sentence


@pytest.mark.parametrize(
    ("family", "key", "value", "told"),
    [
        (DENSE, "hidden_act", "gelu", "gelu"),
        (DENSE, "num_experts", 8, "8 experts"),
        (NEXT, "norm_topk_prob", False, "share of the chosen"),
        (DENSE, "rope_parameters.rope_type", "longrope", "'longrope'"),
    ],
)
def test_a_variant_that_does_not_run_is_refused_by_name(
    family: str, key: str, value: MetadataValue, told: str
) -> None:
    with pytest.raises(UnsupportedFamily, match=told):
        model_spec(qwen.source(family, metadata={key: value}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("expert_gating_func", 2),
        ("expert_weights_norm", False),
        ("expert_weights_scale", 2.5),
    ],
)
def test_experts_weighted_in_another_way_are_refused(key: str, value: MetadataValue) -> None:
    with pytest.raises(UnsupportedFamily, match=r"tiny\.gguf"):
        model_spec(qwen.source(MIXED, Dialect.GGUF, metadata={key: value}))
    usual: dict[str, MetadataValue] = {"expert_gating_func": 1, "expert_weights_norm": True}
    assert model_spec(qwen.source(MIXED, Dialect.GGUF, metadata=usual)).layers


@pytest.mark.parametrize("name", ["qwen4exp", "qwen4_exp"])
def test_flash_next_is_refused_by_name_with_what_runs(name: str) -> None:
    with pytest.raises(UnsupportedFamily) as caught:
        model_spec(MemorySource(name, {}, {}))
    for word in ("Flash-Next", "hyper-connections", "qwen3_5_moe", "tiny.gguf"):
        assert word in caught.value.sentence


@pytest.mark.parametrize("family", [DENSE, MIXED, NEXT])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_every_tensor_is_needed_and_held_to_its_shape(family: str, dialect: Dialect) -> None:
    whole = qwen.source(family, dialect)
    for name, facts in whole.tensors.items():
        if name == "output.weight":
            assert (
                model_spec(qwen.source(family, dialect, without=(name,))).head
                == "token_embd.weight"
            )
            continue
        with pytest.raises(CheckpointError) as caught:
            model_spec(qwen.source(family, dialect, without=(name,)))
        assert caught.value.sentence
        other = tuple(size + 1 for size in facts.shape)
        with pytest.raises(CheckpointError, match=r"shape|experts"):
            model_spec(qwen.source(family, dialect, arrays={name: zeros(*other)}))


@pytest.mark.parametrize(
    "key", ["block_count", "ssm.inner_size", "ssm.group_count", "attention.head_count"]
)
def test_a_missing_key_is_named_as_the_file_would(key: str) -> None:
    with pytest.raises(CheckpointUnreadable, match=rf"no key qwen35\.{key}, which"):
        model_spec(qwen.source(DENSE, Dialect.GGUF, without=(key,)))


def test_mlx_norms_and_convolutions_must_agree() -> None:
    """Whole norms beside published axes, and the other way round: converted by half."""
    sound = qwen.mlx_arrays(qwen.published_arrays(DENSE))
    turned = {name: array.swapaxes(1, 2) for name, array in sound.items() if "conv1d" in name}
    lowered = {name: array - 1 for name, array in sound.items() if "input_layernorm" in name}
    for changed in (turned, lowered):
        with pytest.raises(CheckpointUnreadable, match=r"conv1d\.weight has shape .* mean is"):
            model_spec(qwen.source(DENSE, Dialect.MLX, arrays=changed))
    as_published = model_spec(qwen.source(DENSE, Dialect.MLX, arrays=turned | lowered))
    assert as_published.final_norm.offset == 1.0
    assert model_spec(qwen.source(DENSE, Dialect.MLX)).final_norm.offset == 0.0


@pytest.mark.parametrize("code", ["f16", "bf16"])
def test_a_norm_of_any_float_format_tells_how_it_is_stored(code: str) -> None:
    whole = qwen.mlx_arrays(qwen.published_arrays(DENSE))
    for offset in (0.0, 1.0):
        norms = {n: a - offset for n, a in whole.items() if "input_layernorm" in n}
        source = _Halves(norms, code)
        if offset:
            with pytest.raises(CheckpointUnreadable, match="but their mean"):
                model_spec(source)
        else:
            assert model_spec(source).final_norm.offset == 0.0


def test_norms_that_are_packed_are_refused() -> None:
    source = _Halves({}, "f16")
    name = "language_model.model.layers.0.input_layernorm.weight"
    source.tensors[name] = replace(source.tensors[name], format="q8_0")
    with pytest.raises(CheckpointUnreadable, match=r"input_layernorm\.weight is stored as q8_0"):
        model_spec(source)


def test_a_head_that_is_there_is_used_whatever_the_config_ties() -> None:
    for key in ("tie_word_embeddings", "text_config.tie_word_embeddings"):
        spec = model_spec(qwen.source(DENSE, metadata={key: True}))
        assert (spec.head, spec.notes[0]) == ("lm_head.weight", OWN_HEAD_NOTE)
    assert OWN_HEAD_NOTE not in model_spec(qwen.source(DENSE)).notes


def test_a_config_of_the_older_kind_turns_as_many_elements() -> None:
    """Rotary numbers at the top instead of nested, and the share left to the default."""
    nested = model_spec(qwen.source(NEXT)).attentions[0].rope
    top: dict[str, MetadataValue] = {"rope_theta": 1e7, "partial_rotary_factor": 0.25}
    gone = tuple(f"rope_parameters.{key}" for key in _ROPE)
    assert model_spec(qwen.source(NEXT, metadata=top, without=gone)).attentions[0].rope == nested
    less: dict[str, MetadataValue] = {"rope_theta": 1e7}
    assert model_spec(qwen.source(NEXT, metadata=less, without=gone)).attentions[0].rope == nested
    more: dict[str, MetadataValue] = top | {"partial_rotary_factor": 0.5}
    wider = model_spec(qwen.source(NEXT, metadata=more, without=gone)).attentions[0].rope
    assert wider is not None and len(wider.frequencies) == 4


def test_layers_come_by_interval_where_no_list_says() -> None:
    keys: dict[str, MetadataValue] = {"full_attention_interval": 2}
    listed = model_spec(qwen.source(DENSE))
    assert model_spec(qwen.source(DENSE, metadata=keys, without=("layer_types",))) == listed
    in_gguf = qwen.source(
        DENSE, Dialect.GGUF, metadata=keys, without=("attention.recurrent_layers",)
    )
    assert model_spec(in_gguf) == model_spec(qwen.source(DENSE, Dialect.GGUF))
    with pytest.raises(CheckpointUnreadable, match="both kinds"):
        model_spec(qwen.source(DENSE, without=("layer_types",)))


class _Halves(MemorySource):
    """An MLX checkpoint with some tensors in a format of two bytes."""

    def __init__(self, changed: Mapping[str, qwen.Array], code: str) -> None:
        sound = qwen.source(DENSE, Dialect.MLX, arrays=changed)
        super().__init__(DENSE, {}, qwen.mlx_arrays(qwen.published_arrays(DENSE)))
        self.dialect, self.metadata = sound.dialect, sound.metadata
        self._changed, self._code = changed, code
        for name in changed:
            self.tensors[name] = replace(self.tensors[name], format=code)

    def tensor_bytes(self, name: str) -> memoryview:
        """The changed ones packed anew."""
        if name not in self._changed:
            return super().tensor_bytes(name)
        values = self._changed[name]
        if self._code == "f16":
            return memoryview(values.astype(np.float16).tobytes())
        return memoryview((values.view(np.uint32) >> 16).astype(np.uint16).tobytes())


_ROPE = ("rope_type", "rope_theta", "partial_rotary_factor")
