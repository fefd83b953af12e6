"""Qwen3 checkpoints without delta rules, dense and with experts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.checkpoint.source import Dialect, MetadataValue
from engine.errors import CheckpointUnreadable, UnsupportedFamily
from engine.models import model_spec
from engine.models.spec import ExpertsSpec, FeedForwardSpec, RopeStyle
from tests.helpers.memory_source import MemorySource

HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM, VOCABULARY, LAYERS = 24, 36, 6, 3, 10, 53, 2
EXPERTS, WIDTH = 5, 14
GGUF: dict[str, MetadataValue] = {
    "block_count": LAYERS,
    "context_length": 1024,
    "embedding_length": HIDDEN,
    "feed_forward_length": INNER,
    "attention.head_count": HEADS,
    "attention.head_count_kv": KV_HEADS,
    "attention.key_length": HEAD_DIM,
    "attention.value_length": HEAD_DIM,
    "attention.layer_norm_rms_epsilon": 1e-6,
    "rope.freq_base": 1e6,
}
CONFIG: dict[str, MetadataValue] = {
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": 1024,
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "hidden_act": "silu",
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "tie_word_embeddings": True,
}
MIXED = {"num_experts": EXPERTS, "num_experts_per_tok": 2, "moe_intermediate_size": WIDTH}
MIXED_GGUF = {
    "expert_count": EXPERTS,
    "expert_used_count": 2,
    "expert_feed_forward_length": WIDTH,
}


def _gguf_shapes(*, mixed: bool) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (VOCABULARY, HIDDEN),
        "output_norm.weight": (HIDDEN,),
    }
    second: dict[str, tuple[int, ...]] = {
        "ffn_gate": (INNER, HIDDEN),
        "ffn_up": (INNER, HIDDEN),
        "ffn_down": (HIDDEN, INNER),
    }
    if mixed:
        second = {
            "ffn_gate_inp": (EXPERTS, HIDDEN),
            "ffn_gate_exps": (EXPERTS, WIDTH, HIDDEN),
            "ffn_up_exps": (EXPERTS, WIDTH, HIDDEN),
            "ffn_down_exps": (EXPERTS, HIDDEN, WIDTH),
        }
    layer = second | {
        "attn_norm": (HIDDEN,),
        "ffn_norm": (HIDDEN,),
        "attn_q": (HEADS * HEAD_DIM, HIDDEN),
        "attn_k": (KV_HEADS * HEAD_DIM, HIDDEN),
        "attn_v": (KV_HEADS * HEAD_DIM, HIDDEN),
        "attn_output": (HIDDEN, HEADS * HEAD_DIM),
        "attn_q_norm": (HEAD_DIM,),
        "attn_k_norm": (HEAD_DIM,),
    }
    for index in range(LAYERS):
        shapes |= {f"blk.{index}.{part}.weight": shape for part, shape in layer.items()}
    return shapes


NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.switch_mlp.gate_proj",
    "ffn_up_exps": "mlp.switch_mlp.up_proj",
    "ffn_down_exps": "mlp.switch_mlp.down_proj",
}


def in_gguf(*, mixed: bool = False, **changed: Any) -> MemorySource:
    """A GGUF checkpoint with some keys changed, ``__`` for a dot."""
    keys = GGUF | (MIXED_GGUF if mixed else {})
    keys |= {key.replace("__", "."): value for key, value in changed.items()}
    arrays = {n: np.zeros(s, np.float32) for n, s in _gguf_shapes(mixed=mixed).items()}
    return MemorySource("qwen3moe" if mixed else "qwen3", keys, arrays)


def in_mlx(*, mixed: bool = False, **changed: Any) -> MemorySource:
    """An MLX checkpoint, which for these families has the published names and numbers."""
    arrays = {}
    for name, shape in _gguf_shapes(mixed=mixed).items():
        stem = name.removesuffix(".weight")
        before = ""
        if stem.startswith("blk."):
            _, number, stem = stem.split(".")
            before = f"model.layers.{number}."
        arrays[f"{before}{NAMES[stem]}.weight"] = np.zeros(shape, np.float32)
    found = MemorySource("qwen3_moe" if mixed else "qwen3", {}, arrays)
    found.dialect = Dialect.MLX
    norm = {"norm_topk_prob": True}
    found.metadata = CONFIG | (MIXED | norm if mixed else {}) | changed
    return found


@pytest.mark.parametrize("source", [in_gguf(), in_mlx()])
def test_a_dense_file_gives_its_geometry(source: MemorySource) -> None:
    spec = model_spec(source)
    attention = spec.attentions[1]
    assert (spec.family, spec.vocabulary, spec.hidden) == ("qwen3", 53, 24)
    assert (attention.head_count, attention.kv_head_count, attention.head_dim) == (6, 3, 10)
    assert attention.window is None and attention.gate is None
    assert attention.query_norm is not None and attention.query_norm.offset == 0.0
    assert attention.rope is not None and attention.rope.style is RopeStyle.HALVES
    assert len(attention.rope.frequencies) == 5
    assert spec.head == spec.embedding
    assert spec.recurrent is None
    assert isinstance(spec.layers[0].branches[0].body, FeedForwardSpec)


@pytest.mark.parametrize("source", [in_gguf(mixed=True), in_mlx(mixed=True)])
def test_a_mixture_has_experts_and_no_shared_one(source: MemorySource) -> None:
    spec = model_spec(source)
    (branch,) = spec.layers[1].branches
    assert spec.family == "qwen3_moe"
    assert isinstance(branch.body, ExpertsSpec)
    assert branch.body.active_count == 2
    assert [expert.gate.rows for expert in branch.body.experts] == [
        ((14 * index, 14),) for index in range(5)
    ]
    assert branch.body.experts[4].down.rows == ((96, 24),)


def test_a_width_that_the_config_leaves_out_is_the_makers_default() -> None:
    """128 elements a head whatever the model's width; here no tensor fits that."""
    source = in_mlx()
    source.metadata = {key: v for key, v in source.metadata.items() if key != "head_dim"}
    with pytest.raises(CheckpointUnreadable, match=r"q_proj\.weight .* wanted \(768, 24\)"):
        model_spec(source)


def test_the_other_name_of_the_number_of_experts_is_read() -> None:
    source = in_mlx(mixed=True, num_local_experts=EXPERTS)
    source.metadata = {key: v for key, v in source.metadata.items() if key != "num_experts"}
    assert model_spec(source) == model_spec(in_mlx(mixed=True))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (in_mlx(use_sliding_window=True), "use_sliding_window = True"),
        (in_mlx(hidden_act="gelu"), "hidden_act = 'gelu'"),
        (in_mlx(num_experts=4), "4 experts"),
        (in_gguf(expert_count=4), "4 experts"),
        (in_mlx(mixed=True, norm_topk_prob=False), "share of the chosen"),
        (in_gguf(rope__scaling__type="x"), "'x'"),
    ],
)
def test_variants_that_do_not_run_are_refused_by_name(source: MemorySource, told: str) -> None:
    with pytest.raises(UnsupportedFamily, match=told):
        model_spec(source)


def test_experts_weighted_as_transformers_does_by_default_are_refused() -> None:
    """Where a config does not say, this family's weights are not divided by their sum."""
    source = in_mlx(mixed=True)
    source.metadata = {key: v for key, v in source.metadata.items() if key != "norm_topk_prob"}
    with pytest.raises(UnsupportedFamily, match="share of the chosen"):
        model_spec(source)


def test_yarn_is_read_from_either_place() -> None:
    rule: dict[str, Any] = {"factor": 4.0, "original_max_position_embeddings": 256}
    older = {f"rope_scaling.{key}": value for key, value in (rule | {"type": "yarn"}).items()}
    newer = {f"rope_parameters.{key}": v for key, v in (rule | {"rope_type": "yarn"}).items()}
    keys: dict[str, Any] = {"rope__scaling__type": "yarn", "rope__scaling__factor": 4.0}
    in_a_gguf = in_gguf(**keys, rope__scaling__original_context_length=256)
    ropes = [
        model_spec(source).attentions[0].rope
        for source in (in_mlx(**older), in_mlx(**newer), in_a_gguf)
    ]
    assert ropes[0] is not None
    assert ropes[0] == ropes[1] == ropes[2]
    assert ropes[0].magnitude == pytest.approx(1.1386294)
    assert ropes[0] != model_spec(in_mlx()).attentions[0].rope
