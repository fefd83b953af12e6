"""Qwen checkpoints of every dialect become specs that compute the same, or a sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.checkpoint.source import Dialect, MetadataValue
from engine.errors import CheckpointUnreadable, UnsupportedFamily
from engine.models import model_spec
from engine.models.spec import AttentionSpec, DeltaSpec, ExpertsSpec, HeadOrder, ModelSpec
from tests.helpers import qwen_sources as qwen
from tests.helpers.lone_model import LoneModel, relative_l2
from tests.helpers.memory_source import MemorySource
from tests.helpers.qwen_sources import DENSE, FAMILIES, MIXED, NEXT

IDS = [7, 1, 44, 7, 19, 0, 52, 3, 30]
DIALECTS = (Dialect.PUBLISHED, Dialect.MLX, Dialect.GGUF)


def logits(source: MemorySource, spec: ModelSpec | None = None) -> torch.Tensor:
    with LoneModel(source, 16, spec=spec) as lone:
        return lone.all_logits(IDS)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_gives_its_layers_their_kinds_and_their_slots(family: str, dialect: Dialect) -> None:
    spec = model_spec(qwen.source(family, dialect))
    mixers = [layer.mixer for layer in spec.layers]
    assert [type(mixer) for mixer in mixers] == [DeltaSpec, AttentionSpec, DeltaSpec]
    assert [mixer.slot for mixer in mixers] == [0, 0, 1]
    assert spec.family == family
    assert spec.groups[0].layer_count == 1
    assert (spec.groups[0].kv_head_count, spec.groups[0].head_dim) == (3, 16)
    assert spec.recurrent is not None
    assert spec.recurrent.layer_count == 2
    assert spec.recurrent.state_shape == (6, 8, 10)
    assert spec.recurrent.tail_shape == (3, 92)
    assert (spec.vocabulary, spec.hidden, spec.context_tokens) == (53, 24, 1024)
    assert spec.head != spec.embedding
    assert spec.notes == ()
    attention = spec.attentions[0]
    assert attention.rope is not None and attention.gate is not None
    assert attention.rope.frequencies == pytest.approx((1.0, 1e7**-0.5))
    assert attention.scale == 0.25
    offset = 1.0 if dialect is Dialect.PUBLISHED else 0.0
    assert spec.final_norm.offset == offset
    assert attention.query_norm is not None and attention.query_norm.offset == offset


@pytest.mark.parametrize("family", FAMILIES)
def test_every_dialect_computes_the_same(family: str) -> None:
    published = logits(qwen.source(family))
    for dialect in (Dialect.MLX, Dialect.GGUF):
        assert relative_l2(logits(qwen.source(family, dialect)), published) < 2e-6


def test_the_order_of_value_heads_counts() -> None:
    """The control: the same file read in the other order computes something else."""
    source = qwen.source(DENSE, Dialect.GGUF)
    right, tiled = logits(source), model_spec(source)
    assert relative_l2(logits(source, _in_order(tiled, HeadOrder.TILED)), right) == 0.0
    assert relative_l2(logits(source, _in_order(tiled, HeadOrder.GROUPED)), right) > 1e-2


@pytest.mark.parametrize("family", [MIXED, NEXT])
def test_experts_one_by_one_compute_as_in_a_stack(family: str) -> None:
    stacked = qwen.source(family)
    apart = MemorySource(family, {}, qwen.one_by_one(qwen.published_arrays(family)))
    apart.dialect, apart.metadata = Dialect.PUBLISHED, stacked.metadata
    assert any(name.endswith("mlp.experts.4.up_proj.weight") for name in apart.tensors)
    assert relative_l2(logits(apart), logits(stacked)) < 1e-6


def test_a_gguf_stack_of_gates_over_ups_computes_as_two() -> None:
    apart = qwen.gguf_arrays(MIXED, qwen.published_arrays(MIXED))
    changed, gone = {}, []
    for index in range(3):
        names = [f"blk.{index}.ffn_{part}_exps.weight" for part in ("gate", "up")]
        both = np.concatenate([apart[name] for name in names], axis=1)
        changed[f"blk.{index}.ffn_gate_up_exps.weight"] = both
        gone += names
    fused = qwen.source(MIXED, Dialect.GGUF, arrays=changed, without=tuple(gone))
    assert relative_l2(logits(fused), logits(qwen.source(MIXED, Dialect.GGUF))) < 1e-6


def test_an_older_gguf_with_one_fused_projection_computes_as_two() -> None:
    published = qwen.published_arrays(NEXT)
    changed, gone = {}, []
    for index in (0, 2):
        fused = published[f"model.layers.{index}.linear_attn.in_proj_qkvz.weight"]
        changed[f"blk.{index}.ssm_in.weight"] = fused
        gone += [f"blk.{index}.attn_qkv.weight", f"blk.{index}.attn_gate.weight"]
    older = qwen.source(NEXT, Dialect.GGUF, arrays=changed, without=tuple(gone))
    assert relative_l2(logits(older), logits(qwen.source(NEXT, Dialect.GGUF))) < 1e-6


def test_a_projection_fused_by_key_head_is_refused_where_value_heads_are_tiled() -> None:
    fused = {"blk.0.ssm_ba.weight": np.zeros((12, 24), np.float32)}
    with pytest.raises(CheckpointUnreadable, match=r"blk\.0\.ssm_ba\.weight is fused"):
        model_spec(qwen.source(DENSE, Dialect.GGUF, arrays=fused))


def test_gguf_attention_fused_in_one_tensor_computes_as_three() -> None:
    apart = qwen.gguf_arrays(DENSE, qwen.published_arrays(DENSE))
    names = [f"blk.1.attn_{part}.weight" for part in "qkv"]
    both = {"blk.1.attn_qkv.weight": np.concatenate([apart[name] for name in names])}
    fused = qwen.source(DENSE, Dialect.GGUF, arrays=both, without=tuple(names))
    assert relative_l2(logits(fused), logits(qwen.source(DENSE, Dialect.GGUF))) < 1e-6


def test_a_text_model_alone_computes_as_within_the_whole() -> None:
    """Its names lack a level; the config's keys may have one more."""
    whole = qwen.source(DENSE)
    arrays = {
        name.replace("model.language_model.", "model."): array
        for name, array in qwen.published_arrays(DENSE).items()
    }
    alone = MemorySource("qwen3_5_text", {}, arrays)
    alone.dialect, alone.metadata = Dialect.PUBLISHED, whole.metadata
    whole.metadata = {f"text_config.{key}": value for key, value in whole.metadata.items()}
    assert torch.equal(logits(alone), logits(whole))


def test_draft_and_picture_parts_are_told_and_left_out() -> None:
    more = {
        "mtp.fc.weight": np.zeros((24, 48), np.float32),
        "language_model.model.mtp.layers.0.mlp.gate_proj.weight": np.zeros((36, 24), np.float32),
        "model.visual.patch_embed.proj.weight": np.zeros((4, 4), np.float32),
    }
    source = qwen.source(DENSE, arrays=more)
    assert model_spec(source).notes == (
        "1 tensor of the file belongs to its picture or sound part; not used.",
        "2 tensors of the file belong to its draft layer (multi-token prediction); not used.",
    )
    assert torch.equal(logits(source), logits(qwen.source(DENSE)))


def test_gguf_counts_its_draft_layer_among_the_blocks() -> None:
    more = {"blk.3.nextn.eh_proj.weight": np.zeros((24, 48), np.float32)}
    kinds = (True, False, True, False)
    keys: dict[str, MetadataValue] = {"block_count": 4, "nextn_predict_layers": 1}
    keys["attention.recurrent_layers"] = kinds
    source = qwen.source(DENSE, Dialect.GGUF, arrays=more, metadata=keys)
    assert len(model_spec(source).layers) == 3
    assert "1 tensor of the file belongs to its draft layer" in model_spec(source).notes[0]


def test_numbers_given_layer_by_layer_count_where_layers_have_them() -> None:
    """Layers without attention have no heads; the draft's entries come last."""
    more = {"blk.3.nextn.eh_proj.weight": np.zeros((24, 48), np.float32)}
    keys: dict[str, MetadataValue] = {"block_count": 4, "nextn_predict_layers": 1}
    keys |= {"attention.recurrent_layers": (True, False, True, False)}
    keys |= {"attention.head_count": (0, 6, 0, 9), "attention.head_count_kv": (0, 3, 0, 9)}
    keys |= {"feed_forward_length": (36, 36, 36, 12)}
    spec = model_spec(qwen.source(DENSE, Dialect.GGUF, arrays=more, metadata=keys))
    assert replace(spec, notes=()) == model_spec(qwen.source(DENSE, Dialect.GGUF))
    keys["attention.head_count_kv"] = (3, 0, 3, 3)
    with pytest.raises(CheckpointUnreadable, match="head_count_kv"):
        model_spec(qwen.source(DENSE, Dialect.GGUF, arrays=more, metadata=keys))


def test_a_layer_that_no_key_speaks_of_is_refused() -> None:
    more = {"blk.3.nextn.eh_proj.weight": np.zeros((24, 48), np.float32)}
    with pytest.raises(UnsupportedFamily, match=r"blk\.3\.nextn\.eh_proj"):
        model_spec(qwen.source(DENSE, Dialect.GGUF, arrays=more))


def test_a_draft_layer_alone_is_refused_in_a_sentence() -> None:
    keys = {"block_count": 4, "nextn_predict_layers": 1}
    lone = ("blk.0.attn_norm.weight",)
    with pytest.raises(UnsupportedFamily, match="only the draft layer"):
        model_spec(qwen.source(DENSE, Dialect.GGUF, metadata=keys, without=lone))


def test_rows_of_queries_and_gates_take_turns() -> None:
    attention = model_spec(qwen.source(DENSE)).attentions[0]
    assert attention.gate is not None
    assert attention.query.weight == attention.gate.weight
    assert attention.query.rows == tuple((32 * head, 16) for head in range(6))
    assert attention.gate.rows == tuple((32 * head + 16, 16) for head in range(6))


def test_the_shared_expert_has_a_gate_of_one_row() -> None:
    for dialect in DIALECTS:
        chosen, shared = model_spec(qwen.source(MIXED, dialect)).layers[0].branches
        assert isinstance(chosen.body, ExpertsSpec)
        assert (chosen.body.active_count, len(chosen.body.experts)) == (2, 5)
        assert chosen.gate is None
        assert shared.gate is not None and shared.gate.rows is None


def _in_order(spec: ModelSpec, order: HeadOrder) -> ModelSpec:
    layers = tuple(
        replace(layer, mixer=replace(layer.mixer, order=order))
        if isinstance(layer.mixer, DeltaSpec)
        else layer
        for layer in spec.layers
    )
    return replace(spec, layers=layers)
