"""A thousand strings give the ids of each family's reference tokenizer, and themselves back."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from tokenizers import decoders

from engine.checkpoint.gguf.header import parse_header
from engine.checkpoint.gguf.tokenizer import tokenizer_facts
from engine.checkpoint.published.tokenizer import published_tokenizer
from engine.checkpoint.source import TokenizerFacts
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary.pieces import CONTROL
from tests.helpers.models import llama_cpp_path
from tests.helpers.published_layout import FAMILIES, write_published
from tests.helpers.strings import COUNT, SCRIPTS, thousand_strings
from tests.helpers.text import gemma_facts, smol_facts
from tests.helpers.token_references import digest, stored_digests

STRINGS = thousand_strings()
VOCABULARIES = ("gemma-4", "gpt-2", "llama-bpe", "llama-spm", "qwen2", "qwen35", "starcoder")
RECORDED = {
    "qwen3": "qwen2",
    "llama3": "llama-bpe",
    "gemma-4": "gemma-4",
    "gemma3": "gemma3",
    "smol": "smol",
}
"""Reference -> the vocabulary that has its tokens."""
SOURCES = {
    "qwen3": "qwen2",
    "qwen3.5": "qwen35",
    "llama3": "llama-bpe",
    "smol": "smol",
    "gemma4": "gemma-4",
}
DECODERS = (
    decoders.ByteLevel(),
    decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]),
)
"""Those of published files: byte-level ones, and Gemma's."""
MODEL_TYPES = {"qwen3": "qwen3", "qwen3.5": "qwen3_5", "llama3": "llama", "gemma4": "gemma4"}


@cache
def vocabulary(name: str) -> TokenizerFacts:
    if name == "smol":
        return smol_facts()
    if name == "gemma3":
        return gemma_facts()
    path = llama_cpp_path() / "models" / f"ggml-vocab-{name}.gguf"
    return tokenizer_facts(parse_header(path.read_bytes(), path.name).metadata, path.name)


@cache
def built(name: str) -> Tokenizer:
    return Tokenizer(vocabulary(name))


def composed(name: str, text: str) -> str:
    """What a family makes of a text before it reads it: Qwen composes, nobody else does."""
    return unicodedata.normalize("NFC", text) if name.startswith("qwen") else text


def test_the_strings_are_a_thousand_in_more_than_thirty_scripts() -> None:
    assert len(set(STRINGS)) == COUNT == 1000
    assert len(SCRIPTS) >= 30


@pytest.mark.parametrize("reference", RECORDED)
def test_a_thousand_strings_have_the_references_ids_and_come_back(reference: str) -> None:
    tokenizer = built(RECORDED[reference])
    wanted = stored_digests(reference)
    for text, expected in zip(STRINGS, wanted, strict=True):
        ids = tokenizer.encode(text, special=False)
        assert digest(ids) == expected, text[:80]
        assert tokenizer.decode(ids) == composed(reference, text)


def test_another_rule_gives_other_ids() -> None:
    """The control: the digests tell Qwen's cut from GPT-2's, and composed text from plain."""
    wanted = stored_digests("qwen3")
    for pre in ("gpt-2", "stablelm2"):
        tokenizer = Tokenizer(replace(vocabulary("qwen2"), pre=pre))
        found = [digest(tokenizer.encode(text, special=False)) for text in STRINGS]
        assert sum(map(str.__ne__, found, wanted)) > 50


@pytest.mark.parametrize("name", VOCABULARIES)
def test_vectors_of_llama_cpp_have_their_ids(name: str) -> None:
    """But for Qwen's decomposed letters, which llama.cpp leaves as they are."""
    tokenizer = built(name)
    cases = [case for case in vectors(name) if composed(name, case[0]) == case[0]]
    assert len(cases) > 40
    for text, ids in cases:
        assert tokenizer.encode(text, special=False) == ids, text


def vectors(name: str) -> Iterator[tuple[str, list[int]]]:
    stem = llama_cpp_path() / "models" / f"ggml-vocab-{name}.gguf"
    texts = Path(f"{stem}.inp").read_text("utf-8").split("\n__ggml_vocab_test__\n")
    lines = Path(f"{stem}.out").read_text("utf-8").split("\n")
    for text, line in zip(texts, lines, strict=False):
        yield text, [int(word) for word in line.split()]


@pytest.mark.parametrize("name", ["qwen2", "gemma-4", "llama-bpe"])
def test_random_ids_stream_as_the_reference_decodes_them(name: str) -> None:
    """Whatever the ids spell, no piece ends inside a character and invalid bytes are U+FFFD."""
    tokenizer, draw = built(name), random.Random(5)
    known = [index for index in range(tokenizer.size) if tokenizer.token_text(index)]
    byte_like = [index for index in known if len(tokenizer.token_bytes(index)) == 1]
    for _ in range(400):
        ids = draw.choices(draw.choice((known, byte_like)), k=draw.randrange(1, 60))
        decoder = tokenizer.decoder()
        pieces = [*map(decoder.push, ids), decoder.finish()]
        spelled_out = [tokenizer.token_text(index) for index in ids]
        assert "".join(pieces) == DECODERS[name == "gemma-4"].decode(spelled_out)
        assert tokenizer.decode(ids, skip_control=False) == "".join(pieces)


@pytest.mark.parametrize("name", ["qwen2", "gemma-4", "llama-bpe"])
def test_a_thousand_strings_stream_in_whole_characters(name: str) -> None:
    tokenizer = built(name)
    for text in map(partial(composed, name), STRINGS):
        decoder = tokenizer.decoder()
        pieces = [*map(decoder.push, tokenizer.encode(text, special=False)), decoder.finish()]
        assert "".join(pieces) == text
        assert sum(piece.count("\ufffd") for piece in pieces) == text.count("\ufffd")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_published_tokenizer_reads_as_transformers_reads_it(family: str, tmp_path: Path) -> None:
    """Typed and template text, with markers spelled in it, on tokenizer.json and its config."""
    facts = vocabulary(SOURCES[family])
    write_published(tmp_path, family, facts)
    found = published_tokenizer(tmp_path, {"model_type": MODEL_TYPES.get(family, "llama")}, {})
    assert found.end_ids == facts.end_ids
    tokenizer, reference = Tokenizer(found), auto_tokenizer(tmp_path)
    assert tokenizer.notes == ()
    for text in (*STRINGS[::3], *spelled(facts)):
        for special in (False, True):
            reference.backend_tokenizer.encode_special_tokens = not special
            expected = reference.backend_tokenizer.encode(text, add_special_tokens=False).ids
            assert tokenizer.encode(text, special=special) == expected, text[:80]
    begun = reference.encode("hi")[0] == tokenizer.bos_id
    assert tokenizer.add_bos is (begun or family in ("llama3", "gemma4"))


def auto_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer  # noqa: PLC0415 - seconds that other gates need not spend

    return AutoTokenizer.from_pretrained(folder)


def spelled(facts: TokenizerFacts) -> list[str]:
    """Texts that spell control tokens beside one another, inside words and cut short."""
    kinds = zip(facts.tokens, facts.token_types, strict=True)
    markers = [token for token, kind in kinds if kind == CONTROL][:40]
    texts = [f"a {one} b{one}{one}\n{one[:-1]} x{one}é" for one in markers]
    return [*texts, "".join(markers)]
