"""A checkpoint that says what we want: its next token is a fixed function of the last one.

One llama layer whose projections are all zero, so the residual stream is the last token's
embedding. Tokens of the script have a unit vector each, all others share one; the head's row of a
script token is its predecessor's vector times 20. A greedy reply is then the script, letter for
letter, whatever the prompt, as long as the prompt ends in a token outside the script: the default
template ends in a control token of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<|reply|>"
    "{% else %}<|im_start|>{{ message['role'] }}\n{% endif %}"
    "{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|reply|>{% endif %}"
)
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
END = "<|im_end|>"
_SPECIALS = (END, "<|im_start|>", "<|reply|>")
_HEAD_DIM = 64


@dataclass(frozen=True, slots=True)
class Script:
    """What was written.

    Attributes:
        ids: of the pieces, in order.
        end_id: the token that ends the reply, drawn after the last piece unless it loops.
        vocabulary: tokens in all.
    """

    ids: tuple[int, ...]
    end_id: int
    vocabulary: int


def write_script(
    path: Path,
    pieces: Sequence[str | bytes],
    *,
    loop: bool = False,
    template: str | None = TEMPLATE,
    added: Mapping[str, int] | None = None,
    context_tokens: int = 4096,
) -> Script:
    """Write a checkpoint whose greedy reply is ``pieces``.

    Args:
        pieces: one token each, no two alike. Bytes give tokens that end inside a character.
        loop: begin again after the last piece, for ever.
        template: its chat template; None for a base model.
        added: further tokens that are matched as a whole, text to type (``CONTROL`` or
            ``USER_DEFINED``); a piece that equals one of them is that token.
    """
    added = dict(added or {})
    tokens = _Vocabulary()
    for text in _SPECIALS:
        tokens.add(text, CONTROL)
    for text, kind in added.items():
        tokens.add(text, kind)
    for byte in range(256):
        tokens.add(_byte_level(bytes([byte])), NORMAL)
    tokens.add("th", NORMAL)
    ids = tuple(_piece_id(tokens, piece, added) for piece in pieces)
    if len(set(ids)) != len(ids):
        raise ValueError("two pieces are alike, so the next token is no function of the last one")
    end_id = tokens.ids[END]
    writer = gguf.GGUFWriter(path, "llama")
    hidden = -(-(len(ids) + 1) // _HEAD_DIM) * _HEAD_DIM
    _write_metadata(writer, hidden, context_tokens)
    _write_tokenizer(writer, tokens, template)
    _write_tensors(writer, hidden, len(tokens.texts), ids, ids[0] if loop else end_id)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return Script(ids, end_id, len(tokens.texts))


class _Vocabulary:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.kinds: list[int] = []
        self.ids: dict[str, int] = {}

    def add(self, text: str, kind: int) -> int:
        if text not in self.ids:
            self.ids[text] = len(self.texts)
            self.texts.append(text)
            self.kinds.append(kind)
        return self.ids[text]


def _piece_id(tokens: _Vocabulary, piece: str | bytes, added: Mapping[str, int]) -> int:
    if isinstance(piece, str) and (piece in added or piece in _SPECIALS):
        return tokens.ids[piece]
    raw = piece.encode() if isinstance(piece, str) else piece
    return tokens.add(_byte_level(raw), NORMAL)


def _byte_level(raw: bytes) -> str:
    """Bytes in GPT-2's alphabet: printable bytes as they are, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return "".join(chr(byte if byte in printable else 256 + others.index(byte)) for byte in raw)


def _write_metadata(writer: gguf.GGUFWriter, hidden: int, context_tokens: int) -> None:
    writer.add_name("Script")
    writer.add_block_count(1)
    writer.add_context_length(context_tokens)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(_HEAD_DIM)
    writer.add_head_count(hidden // _HEAD_DIM)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(_HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)


def _write_tokenizer(writer: gguf.GGUFWriter, tokens: _Vocabulary, template: str | None) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens.texts)
    writer.add_token_types(tokens.kinds)
    writer.add_token_merges(["t h"])
    writer.add_eos_token_id(tokens.ids[END])
    writer.add_add_bos_token(False)
    if template is not None:
        writer.add_chat_template(template)


def _write_tensors(
    writer: gguf.GGUFWriter, hidden: int, vocabulary: int, ids: Sequence[int], last: int
) -> None:
    embedding = np.zeros((vocabulary, hidden), np.float32)
    head = np.zeros((vocabulary, hidden), np.float32)
    embedding[:, 0] = 1
    head[ids[0], 0] = 20
    for step, (token, following) in enumerate(zip(ids, [*ids[1:], last], strict=True), start=1):
        embedding[token] = 0
        embedding[token, step] = 1
        head[following, step] = 20
    ones, narrow = np.ones(hidden, np.float32), _HEAD_DIM
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output.weight", head)
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("blk.0.attn_norm.weight", ones)
    writer.add_tensor("blk.0.ffn_norm.weight", ones)
    for name, rows, columns in (
        ("attn_q", hidden, hidden),
        ("attn_k", narrow, hidden),
        ("attn_v", narrow, hidden),
        ("attn_output", hidden, hidden),
        ("ffn_gate", narrow, hidden),
        ("ffn_up", narrow, hidden),
        ("ffn_down", hidden, narrow),
    ):
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros((rows, columns), np.float32))
