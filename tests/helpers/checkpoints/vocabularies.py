"""Tokenizers of exactly ``VOCABULARY`` tokens, trained on the tests' English text.

Built as the families publish theirs: byte-level BPE after Qwen's pre-tokenizer, and Gemma's BPE
over characters, with a token for every byte that no character covers.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from tests.helpers.checkpoints.shapes import VOCABULARY

TEXT = Path(__file__).resolve().parents[2] / "data" / "english.txt"
QWEN_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
GEMMA_SPECIALS = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>")
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GEMMA_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|turn>{{ message.role }}\n{{ message.content }}"
    "<turn|>\n{% endfor %}{% if add_generation_prompt %}<|turn>model\n{% endif %}"
)


def write_qwen(folder: Path) -> dict[str, Any]:
    """Write the tokenizer's files; returns the generation defaults that go with it."""
    tokenizer = Tokenizer.from_str(_qwen())
    tokenizer.save(str(folder / "tokenizer.json"))
    first = VOCABULARY - len(QWEN_SPECIALS)
    config = {
        "tokenizer_class": "Qwen2Tokenizer",
        "add_bos_token": False,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
    }
    _write(folder, config, QWEN_TEMPLATE, dict(enumerate(QWEN_SPECIALS, first)))
    return {"eos_token_id": [VOCABULARY - 1, first], "temperature": 0.7, "top_k": 20, "top_p": 0.8}


def write_gemma(folder: Path) -> dict[str, Any]:
    """Write the tokenizer's files; returns the generation defaults that go with it."""
    tokenizer = Tokenizer.from_str(_gemma())
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "GemmaTokenizer",
        "add_bos_token": True,
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
        "sot_token": "<|turn>",
        "eot_token": "<turn|>",
        "extra_special_tokens": {"sot_token": "<|turn>", "eot_token": "<turn|>"},
    }
    _write(folder, config, GEMMA_TEMPLATE, dict(enumerate(GEMMA_SPECIALS)))
    return {"bos_token_id": 2, "eos_token_id": [1, 6], "top_k": 64, "top_p": 0.95}


@cache
def _qwen() -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(QWEN_SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train([str(TEXT)], trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in QWEN_SPECIALS])
    assert tokenizer.get_vocab_size() == VOCABULARY
    return tokenizer.to_str()


@cache
def _gemma() -> str:
    parts = Tokenizer(models.BPE())
    parts.normalizer = normalizers.Replace(" ", "▁")
    parts.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(GEMMA_SPECIALS) - 256, show_progress=False
    )
    parts.train([str(TEXT)], trainer)
    trained = json.loads(parts.to_str())["model"]
    tokens = [*GEMMA_SPECIALS, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens += sorted(trained["vocab"], key=trained["vocab"].__getitem__)
    assert len(tokens) == VOCABULARY
    whole = Tokenizer(
        models.BPE(
            {token: index for index, token in enumerate(tokens)},
            [tuple(merge) for merge in trained["merges"]],
            byte_fallback=True,
            fuse_unk=True,
            unk_token="<unk>",
        )
    )
    whole.normalizer = normalizers.Replace(" ", "▁")
    whole.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    whole.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    whole.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", 2)]
    )
    whole.add_special_tokens([AddedToken(text, special=True) for text in GEMMA_SPECIALS])
    return whole.to_str()


def _write(folder: Path, config: dict[str, Any], template: str, specials: dict[int, str]) -> None:
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    config["added_tokens_decoder"] = {
        str(index): {"content": text, "special": True} | flags for index, text in specials.items()
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    (folder / "chat_template.jinja").write_text(template, "utf-8")
