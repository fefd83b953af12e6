"""Small sound GGUF files of models with delta rules and experts: seeds of the mutants.

Three blocks of width 8: a delta rule, attention with a gate, and the draft layer that does not run.
The numbers are wide, so that extremes reach them.
"""

from __future__ import annotations

from tests.helpers.gguf_edit import BOOL, F64, U64, Image, Line, array, scalar, string

WIDTH = 8
_COUNTS = {
    "context_length": 64,
    "embedding_length": WIDTH,
    "block_count": 3,
    "nextn_predict_layers": 1,
    "attention.head_count": 2,
    "attention.head_count_kv": 1,
    "attention.key_length": 8,
    "attention.value_length": 8,
    "rope.dimension_count": 2,
    "full_attention_interval": 2,
    "ssm.conv_kernel": 4,
    "ssm.state_size": 2,
    "ssm.group_count": 1,
    "ssm.time_step_rank": 2,
    "ssm.inner_size": 6,
}
_EXPERTS = {
    "expert_count": 3,
    "expert_used_count": 2,
    "expert_feed_forward_length": 5,
    "expert_shared_feed_forward_length": 6,
    "expert_gating_func": 1,
}
_NORMS = ("attn_norm", "post_attention_norm")
_DELTA = {
    "attn_qkv.weight": (10, WIDTH),
    "attn_gate.weight": (6, WIDTH),
    "ssm_conv1d.weight": (10, 4),
    "ssm_dt.bias": (2,),
    "ssm_a": (2,),
    "ssm_norm.weight": (3,),
    "ssm_out.weight": (WIDTH, 6),
}
_ATTENTION = {
    "attn_q.weight": (32, WIDTH),
    "attn_k.weight": (8, WIDTH),
    "attn_v.weight": (8, WIDTH),
    "attn_output.weight": (WIDTH, 16),
    "attn_q_norm.weight": (8,),
    "attn_k_norm.weight": (8,),
}
_DENSE = {
    "ffn_gate.weight": (5, WIDTH),
    "ffn_up.weight": (5, WIDTH),
    "ffn_down.weight": (WIDTH, 5),
}
_MIXED = {
    "ffn_gate_inp.weight": (3, WIDTH),
    "ffn_gate_exps.weight": (3, 5, WIDTH),
    "ffn_up_exps.weight": (3, 5, WIDTH),
    "ffn_down_exps.weight": (3, WIDTH, 5),
    "ffn_gate_inp_shexp.weight": (WIDTH,),
    "ffn_gate_shexp.weight": (6, WIDTH),
    "ffn_up_shexp.weight": (6, WIDTH),
    "ffn_down_shexp.weight": (WIDTH, 6),
}


def hybrid_images() -> list[Image]:
    """One file a family."""
    return [_image(name) for name in ("qwen35", "qwen35moe", "qwen3next")]


def _image(name: str) -> Image:
    dense = name == "qwen35"
    image = Image()
    image.set("general.architecture", string(name))
    counts = _COUNTS | ({"feed_forward_length": 5} if dense else _EXPERTS)
    for key, count in counts.items():
        image.set(f"{name}.{key}", scalar(U64, count))
    for key, number in (("attention.layer_norm_rms_epsilon", 1e-6), ("rope.freq_base", 1e7)):
        image.set(f"{name}.{key}", scalar(F64, number))
    image.set(f"{name}.attention.recurrent_layers", array(BOOL, [1, 0, 0]))
    image.tensors = [
        _line("output_norm.weight", (WIDTH,)),
        *(
            _line(f"blk.{block}.{part}", shape)
            for block in range(3)
            for part, shape in _parts(name, recurs=block == 0).items()
        ),
        _line("blk.2.nextn.eh_proj.weight", (WIDTH, 2 * WIDTH)),
        _line("token_embd.weight", (4, WIDTH)),
    ]
    return image


def _parts(name: str, *, recurs: bool) -> dict[str, tuple[int, ...]]:
    parts: dict[str, tuple[int, ...]] = {f"{norm}.weight": (WIDTH,) for norm in _NORMS}
    parts |= _DENSE if name == "qwen35" else _MIXED
    if not recurs:
        return parts | _ATTENTION
    if name == "qwen3next":
        return parts | _DELTA | {"ssm_ba.weight": (4, WIDTH)}
    return parts | _DELTA | {"ssm_beta.weight": (2, WIDTH), "ssm_alpha.weight": (2, WIDTH)}


def _line(name: str, shape: tuple[int, ...]) -> Line:
    elements = 1
    for size in shape:
        elements *= size
    return Line(name.encode(), shape[::-1], 0, bytes(4 * elements))
