"""Small sound GGUF files that between them hold every kind of field: seeds of the mutants.

Every value type, a small vocabulary of each tokenizer kind with tensors of several formats, and
a whole model of a few blocks for each family, with its numbers in their widest types.
"""

from __future__ import annotations

from tests.fuzz.gemma4_headers import gemma4_images
from tests.fuzz.hybrid_headers import hybrid_images
from tests.helpers.gguf_edit import (
    BOOL,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    STRING,
    U8,
    U16,
    U32,
    U64,
    Image,
    Line,
    array,
    nested,
    scalar,
    string,
    u32,
)

_TYPES = {0: 4, 1: 2, 2: 18, 8: 34, 12: 144, 30: 2, 39: 17}


def small_images() -> list[Image]:
    """The files, in the order of the module's first lines."""
    plain = [_every_value(), _byte_level_model(), _spm_model()]
    families = [_family("llama"), _family("gemma3"), *hybrid_images(), *gemma4_images()]
    return [*plain, *families]


def _every_value() -> Image:
    image = Image()
    image.set("general.architecture", string("llama"))
    for kind in (U8, I8, U16, I16, U32, I32, U64, I64, BOOL):
        image.set(f"x.scalar{kind}", scalar(kind, 1))
        image.set(f"x.array{kind}", array(kind, [1, 0, 1]))
    for kind in (F32, F64):
        image.set(f"x.scalar{kind}", scalar(kind, 0.5))
        image.set(f"x.array{kind}", array(kind, [0.5, -1.0]))
    image.set("x.empty", array(BOOL, []))
    image.set("x.words", array(STRING, ["a", "", "é\U0001f600"]))
    image.set("x.nested", nested([array(U8, [1]), nested([array(STRING, ["z"])])]))
    image.set("general.alignment", u32(32))
    image.tensors = [_line("a", 0, 3), _line("b", 2, 32)]
    return image


def _byte_level_model() -> Image:
    image = _model("gpt2", ["<|im_end|>", "a", "b", "ab"], [3, 1, 1, 1])
    image.set("tokenizer.ggml.pre", string("gpt-2"))
    image.set("tokenizer.ggml.merges", array(STRING, ["a b"]))
    image.set("tokenizer.chat_template", string("{{ messages }}"))
    image.set("tokenizer.ggml.suppress_tokens", array(I32, [1]))
    return image


def _spm_model() -> Image:
    image = _model("llama", ["<unk>", "<s>", "</s>", "<0x41>", "▁a"], [2, 3, 3, 6, 1])
    image.set("tokenizer.ggml.scores", array(F32, [0, 0, 0, -1, -2]))
    image.set("general.sampling.temp", scalar(F32, 0.7))
    image.set("general.sampling.top_k", scalar(I32, 40))
    image.set("split.count", scalar(U16, 1))
    return image


def _model(kind: str, tokens: list[str], types: list[int]) -> Image:
    image = Image()
    image.set("general.architecture", string("llama"))
    image.set("general.name", string("tiny"))
    image.set("llama.context_length", u32(64))
    image.set("tokenizer.ggml.model", string(kind))
    image.set("tokenizer.ggml.tokens", array(STRING, tokens))
    image.set("tokenizer.ggml.token_type", array(I32, types))
    image.set("tokenizer.ggml.eos_token_id", u32(0))
    image.set("tokenizer.ggml.add_bos_token", scalar(BOOL, 0))
    sizes = ((0, 5), (1, 3), (2, 64), (8, 32), (12, 256), (30, 1), (39, 32))
    image.tensors = [_line(f"blk.{i}.w", *size) for i, size in enumerate(sizes)]
    return image


def _family(name: str) -> Image:
    """Two blocks of width 8 with one head; the numbers are wide, so that extremes reach them."""
    image = Image()
    image.set("general.architecture", string(name))
    for key, count in (
        ("context_length", 64),
        ("embedding_length", 8),
        ("block_count", 2),
        ("feed_forward_length", 8),
        ("attention.head_count", 1),
        ("attention.head_count_kv", 1),
        ("attention.key_length", 8),
        ("rope.dimension_count", 8),
        ("rope.scaling.original_context_length", 32),
    ):
        image.set(f"{name}.{key}", scalar(U64, count))
    for key, number in (
        ("attention.layer_norm_rms_epsilon", 1e-5),
        ("attention.scale", 0.5),
        ("rope.freq_base", 10_000.0),
        ("rope.scaling.factor", 4.0),
        ("rope.scaling.yarn_beta_fast", 32.0),
        ("rope.scaling.yarn_beta_slow", 1.0),
    ):
        image.set(f"{name}.{key}", scalar(F64, number))
    image.set(f"{name}.rope.scaling.type", string("yarn"))
    names = [f"{kind}.weight" for kind in ("attn_norm", "ffn_norm")]
    if name == "gemma3":
        image.set("gemma3.attention.sliding_window", u32(16))
        image.set("gemma3.attention.sliding_window_pattern", array(BOOL, [1, 0]))
        image.set("gemma3.rope.freq_base_swa", scalar(F64, 10_000.0))
        norms = ("attn_q_norm", "attn_k_norm", "post_attention_norm", "post_ffw_norm")
        names += [f"{kind}.weight" for kind in norms]
    matrices = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    image.tensors = [
        _line("output_norm.weight", 0, 8),
        *(_line(f"blk.{block}.{norm}", 0, 8) for block in range(2) for norm in names),
        *(_matrix(f"blk.{block}.{kind}.weight", 8) for block in range(2) for kind in matrices),
        _matrix("token_embd.weight", 4),
    ]
    return image


def _matrix(name: str, rows: int) -> Line:
    return Line(name.encode(), (8, rows), 0, bytes(8 * rows * 4))


def _line(name: str, type_id: int, elements: int) -> Line:
    block = {2: 32, 8: 32, 12: 256, 39: 32}.get(type_id, 1)
    size = elements // block * _TYPES[type_id]
    return Line(name.encode(), (elements,), type_id, bytes(size))
