"""Writes the tokenizer of a GGUF vocabulary as its makers publish it, tokenizer.json and config.

Steps and classes are those of the published files themselves (Qwen3, Qwen3.5, Llama 3, SmolLM2,
Gemma), written down here by hand, so that transformers reads what it would read from the hub.
SmolLM2's class is the one that follows the file: its own, GPT2Tokenizer, cuts digits otherwise than
the file says and than the model was trained.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.checkpoint.source import TokenizerFacts

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN = _LLAMA3.replace("{1,3}", "")
_QWEN35 = _QWEN.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(
    r"\s\p{L}\p{N}", r"\s\p{L}\p{M}\p{N}"
)
_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
_APART = ("qwen3", "qwen3.5", "llama3")
"""Markers follow the vocabulary there; the others have them in it, with the first ids."""
FAMILIES = ("qwen3", "qwen3.5", "llama3", "smol", "gemma4")
_CLASSES = {
    "qwen3": "Qwen2Tokenizer",
    "qwen3.5": "Qwen3_5Tokenizer",
    "llama3": "PreTrainedTokenizerFast",
    "smol": "PreTrainedTokenizerFast",
    "gemma4": "GemmaTokenizer",
}


def write_published(folder: Path, family: str, facts: TokenizerFacts) -> None:
    """Write the two files into an empty folder."""
    special = [i for i, kind in enumerate(facts.token_types) if kind in (2, 3, 4)]
    added = [_added(i, facts) for i in special]
    base = {token: i for i, token in enumerate(facts.tokens) if facts.token_types[i] != 5}
    if family in _APART:
        for index in special:
            del base[facts.tokens[index]]
    gemma = family == "gemma4"
    definition = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        **family_steps(family),
        "post_processor": _template("<bos>", 2) if gemma else None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>" if gemma else None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": gemma,
            "byte_fallback": gemma,
            "ignore_merges": family == "llama3",
            "vocab": base,
            "merges": [_pair(merge) for merge in facts.merges],
        },
    }
    _write(folder / "tokenizer.json", definition)
    _write(folder / "tokenizer_config.json", _config(family, facts))


def _pair(merge: str | tuple[str, str]) -> list[str]:
    if isinstance(merge, tuple):
        return list(merge)
    cut = merge.index(" ", 1)
    return [merge[:cut], merge[cut + 1 :]]


def _added(index: int, facts: TokenizerFacts) -> dict[str, Any]:
    return {
        "id": index,
        "content": facts.tokens[index],
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": facts.token_types[index] != 4,
    }


def family_steps(family: str) -> dict[str, Any]:
    """The parts of a tokenizer.json that say how a family cuts text and puts it together."""
    if family == "gemma4":
        spaces = {"String": " "}
        return {
            "normalizer": {"type": "Replace", "pattern": spaces, "content": "▁"},
            "pre_tokenizer": {
                "type": "Split",
                "pattern": spaces,
                "behavior": "MergedWithPrevious",
                "invert": False,
            },
            "decoder": {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                    {"type": "ByteFallback"},
                    {"type": "Fuse"},
                ],
            },
        }
    if family == "smol":
        cuts = [{"type": "Digits", "individual_digits": True}, _BYTES | {"use_regex": True}]
    else:
        pattern = {"qwen3": _QWEN, "qwen3.5": _QWEN35, "llama3": _LLAMA3}[family]
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
        cuts = [split | {"invert": False}, _BYTES | {"use_regex": False}]
    return {
        "normalizer": {"type": "NFC"} if family.startswith("qwen") else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cuts},
        "decoder": _BYTES | {"use_regex": True},
    }


def _template(token: str, index: int) -> dict[str, Any]:
    first = {"SpecialToken": {"id": token, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, text],
        "pair": [first, text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {token: {"id": token, "ids": [index], "tokens": [token]}},
    }


def _config(family: str, facts: TokenizerFacts) -> dict[str, Any]:
    def named(index: int | None) -> str | None:
        return None if index is None else facts.tokens[index]

    return {
        "tokenizer_class": _CLASSES[family],
        "bos_token": None if family.startswith("qwen") else named(facts.bos_id),
        "eos_token": named(facts.eos_id),
        "pad_token": named(facts.padding_id),
        "unk_token": "<unk>" if family == "gemma4" else None,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1000000000000000019884624838656,
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
