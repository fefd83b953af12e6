"""Whatever a tokenizer's files hold: a tokenizer or one typed error, in bounded time and memory."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.checkpoint.source import TokenizerFacts
from engine.errors import CheckpointUnreadable, RequestInvalid
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary.pieces import CONTROL, NORMAL, USER_DEFINED
from tests.helpers.definitions import Json, byte_definition, read_folder, space_definition
from tests.helpers.text import byte_facts, spm_facts

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 3, 257, 1 << 19, 1 << 70, 0.5, "", "a", "<pad>", "▁", "\u0000", [], {}),
    *([["a", "b"]], {"type": "NFC"}, {"type": "Split"}, {"a": 1}, ["a b"], {"Regex": "\\p{L}+"}),
    *({"Regex": "[a-"}, {"String": ""}, "Sequence", "Removed", {"type": "Metaspace"}),
)
TEXT = "a b  \u00e9 12 <pad> <|im_end|> \U0001f642\n"
CHARACTERS = st.text("ab\\pLNs(){}[]^|*+?!:=<i,-1\u00e9 ", max_size=24)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key in it, but for those of the vocabulary."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if key != "vocab" and isinstance(value[key], dict | list):
            yield from places(value[key])


def read(definition: Json) -> Tokenizer | None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return Tokenizer(read_folder(Path(folder), definition))
        except CheckpointUnreadable as error:
            assert len(error.sentence) < 600
            return None


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_changed_definition_is_read_or_refused(data: st.DataObject) -> None:
    make = data.draw(st.sampled_from([byte_definition, space_definition]))
    definition = make(("a", "b"))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(list(places(definition))))
        container[key] = copy.deepcopy(data.draw(st.sampled_from(VALUES)))
    tokenizer = read(definition)
    if tokenizer is not None:
        typed = set(tokenizer.encode(TEXT, special=False))
        found = {tokenizer.token_text(index) for index in typed & tokenizer.control_ids}
        # A letter may be a marker too, and what no token spells is the unknown token.
        assert all(len(text) < 2 for text in found - {definition["model"]["unk_token"]})
        tokenizer.decode(tokenizer.encode(TEXT, special=True))


@settings(max_examples=80, deadline=None)
@given(CHARACTERS)
def test_any_pattern_is_run_or_refused(pattern: str) -> None:
    definition = byte_definition(("a", "b"))
    definition["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = pattern
    tokenizer = read(definition)
    if tokenizer is not None:
        assert tokenizer.decode(tokenizer.encode(TEXT, special=False)) == TEXT


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_cut_or_flipped_file_is_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(json.dumps(byte_definition(("a", "b"))).encode())
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    size = data.draw(st.sampled_from([len(content), data.draw(st.integers(0, len(content)))]))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tokenizer.json").write_bytes(content[:size])
        try:
            Tokenizer(read_folder(Path(folder), None)).encode(TEXT, special=True)
        except CheckpointUnreadable as error:
            assert error.sentence


def test_a_pattern_that_runs_wild_ends_the_request_and_not_the_engine() -> None:
    """The control: a text that the pattern likes is read by the same tokenizer."""
    definition = byte_definition(("a", "b"))
    pattern = {"Regex": r"[^b]?[^b]?[^b]?[^b]*\s"}
    definition["pre_tokenizer"]["pretokenizers"][0]["pattern"] = pattern
    tokenizer = read(definition)
    assert tokenizer is not None
    with pytest.raises(RequestInvalid) as caught:
        tokenizer.encode("a" * 2_000_000, special=False)
    assert caught.value.numbers == {"characters": 2_000_000}
    assert tokenizer.decode(tokenizer.encode(TEXT, special=False)) == TEXT


def longer(facts: TokenizerFacts, kind: int, *tokens: str) -> TokenizerFacts:
    return replace(
        facts,
        tokens=(*facts.tokens, *tokens),
        token_types=(*facts.token_types, *[kind] * len(tokens)),
        scores=(*facts.scores, *[-1.0] * len(tokens)) if facts.scores else (),
    )


@pytest.mark.parametrize("kind", [CONTROL, USER_DEFINED])
def test_endless_markers_are_refused_with_their_numbers(kind: int) -> None:
    with pytest.raises(CheckpointUnreadable) as caught:
        Tokenizer(longer(byte_facts(), kind, "x" * 10_000_000))
    assert caught.value.numbers == {"total": 10_000_007, "longest": 10_000_000}
    many = [f"{number:04d}" + "x" * 1000 for number in range(2000)]
    with pytest.raises(CheckpointUnreadable, match="2008007 characters"):
        Tokenizer(longer(byte_facts(), kind, *many))


def test_a_token_of_ten_megabytes_is_only_long() -> None:
    tokenizer = Tokenizer(longer(byte_facts(), NORMAL, "x" * 10_000_000))
    assert len(tokenizer.token_bytes(tokenizer.size - 1)) == 10_000_000
    assert tokenizer.decode(tokenizer.encode("xx", special=False)) == "xx"


@pytest.mark.parametrize("facts", [byte_facts(), spm_facts({"a": -1.0, "▁": -2.0})])
def test_of_a_token_that_stands_twice_the_last_counts_and_empty_ones_are_holes(
    facts: TokenizerFacts,
) -> None:
    """As llama.cpp reads them; the control: without the second one it is the first."""
    first = facts.tokens.index("a")
    twice = longer(facts, NORMAL, "a", "", "")
    tokenizer = Tokenizer(twice)
    assert Tokenizer(facts).encode("a", special=False)[-1] == first
    assert tokenizer.encode("a", special=False)[-1] == len(facts.tokens)
    assert tokenizer.decode([first]) == tokenizer.decode([len(facts.tokens)]) == "a"
    assert tokenizer.hole_ids == {tokenizer.size - 2, tokenizer.size - 1}


def test_half_a_million_tokens_are_read() -> None:
    facts = byte_facts()
    tokenizer = Tokenizer(longer(facts, NORMAL, *map(str, range((1 << 19) - len(facts.tokens)))))
    assert tokenizer.size == 1 << 19
