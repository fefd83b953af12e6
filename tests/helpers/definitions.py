"""Small tokenizer.json files made by hand, in the layouts that models are published in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.checkpoint.published.tokenizer import published_tokenizer
from engine.checkpoint.source import TokenizerFacts
from engine.text.vocabulary.pieces import byte_table

Json = dict[str, Any]
_BYTES: Json = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}


def byte_definition(*merges: tuple[str, str]) -> Json:
    """Qwen's layout: 256 bytes, what the merges make, then <|endoftext|>, <|im_end|>, <think>."""
    tokens = [*byte_table(), *(left + right for left, right in merges)]
    base = {token: index for index, token in enumerate(tokens)}
    markers = (("<|endoftext|>", True), ("<|im_end|>", True), ("<think>", False))
    return {
        "added_tokens": [
            added(len(base) + place, text, special=special)
            for place, (text, special) in enumerate(markers)
        ],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                split(r"\p{N}| ?[^\s\p{N}]+|\s+"),
                _BYTES | {"use_regex": False},
            ],
        },
        "post_processor": dict(_BYTES),
        "decoder": dict(_BYTES),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": base,
            "merges": [list(pair) for pair in merges],
        },
    }


def space_definition(*merges: tuple[str, str]) -> Json:
    """Gemma's layout: <pad> <eos> <bos> <unk>, 256 byte tokens, letters, what the merges make."""
    markers = ("<pad>", "<eos>", "<bos>", "<unk>")
    tokens = [*markers, *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
    tokens += [chr(letter) for letter in range(0x21, 0x7F)]
    tokens += [left + right for left, right in merges]
    return {
        "added_tokens": [added(i, text) for i, text in enumerate(markers)],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": split(" ", kind="String") | {"behavior": "MergedWithPrevious"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [_part("SpecialToken", "<bos>"), _part("Sequence", "A")],
            "pair": [_part("Sequence", "A"), _part("Sequence", "B")],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}},
        },
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [" ".join(pair) for pair in merges],
        },
    }


def _part(kind: str, name: str) -> Json:
    return {kind: {"id": name, "type_id": 0}}


def added(index: int, content: str, *, special: bool = True, **flags: bool) -> Json:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": index, "content": content, "special": special, **plain, **flags}


def split(pattern: str, *, kind: str = "Regex") -> Json:
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": "Isolated", "invert": False}


def read_folder(
    folder: Path,
    definition: Json | None,
    settings: Json | None = None,
    config: Json | None = None,
    generation: Json | None = None,
) -> TokenizerFacts:
    """The facts of a folder with these files."""
    for name, content in (("tokenizer.json", definition), ("tokenizer_config.json", settings)):
        if content is not None:
            (folder / name).write_text(json.dumps(content), "utf-8")
    return published_tokenizer(folder, config or {}, generation or {})
