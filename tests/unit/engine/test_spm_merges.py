"""Merges rebuilt from scores read like SPM, and the kept file never changes what is read."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.checkpoint.source import TokenizerFacts
from engine.errors import CheckpointUnreadable
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary.merges import spm_merges
from tests.helpers.text import spm_facts

PIECES = [
    "a",
    "b",
    "c",
    "ab",
    "bc",
    "abc",
    "ca",
    "aa",
    "bca",
    "aab",
    "cab",
    "abca",
    "▁",
    "▁a",
    "▁ab",
]
SCORES = st.lists(
    st.integers(1, 10_000), min_size=len(PIECES), max_size=len(PIECES), unique=True
).map(lambda values: [-float(value) for value in values])


def spm_by_hand(facts: TokenizerFacts, text: str) -> list[str]:
    """SPM as it is written down: join the neighbours whose piece scores best, until none does."""
    scores = {
        token: score
        for token, score, kind in zip(facts.tokens, facts.scores, facts.token_types, strict=True)
        if kind == 1
    }
    symbols = list(text.replace(" ", "▁"))
    while True:
        found = [
            (-scores[left + right], at)
            for at, (left, right) in enumerate(pairwise(symbols))
            if left + right in scores
        ]
        if not found:
            return symbols
        at = min(found)[1]
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]


@settings(max_examples=100, deadline=None)
@given(SCORES, st.text("abc ", max_size=14))
def test_rebuilt_merges_read_as_spm_does(scores: list[float], text: str) -> None:
    facts = spm_facts(dict(zip(PIECES, scores, strict=True)), add_space_prefix=False)
    tokenizer = Tokenizer(facts)
    ids = tokenizer.encode(text, special=False)
    assert [tokenizer.token_text(index) for index in ids] == spm_by_hand(facts, text)


def test_pieces_of_hostile_length_are_refused_at_once() -> None:
    with pytest.raises(CheckpointUnreadable, match="too long"):
        spm_merges(spm_facts({"a" * 20_000: -1.0}), None)


def test_a_piece_that_no_join_leads_to_has_no_merge() -> None:
    """SPM never gives it, whatever its score; the control is the piece that it can build."""
    facts = spm_facts({"a": -3.0, "b": -4.0, "ab": -2.0, "bab": -1.0, "cab": -0.5})
    merges = spm_merges(facts, None)
    assert merges == [("b", "ab"), ("a", "b")]


def facts_for_cache() -> TokenizerFacts:
    return spm_facts({piece: -float(rank) for rank, piece in enumerate(PIECES, start=1)})


def test_kept_merges_are_the_rebuilt_ones(tmp_path: Path) -> None:
    facts = facts_for_cache()
    fresh = spm_merges(facts, None)
    folder = tmp_path / "not" / "there" / "yet"
    assert spm_merges(facts, folder) == fresh
    assert len(list(folder.iterdir())) == 1
    assert spm_merges(facts, folder) == fresh


def test_a_kept_file_is_read_and_not_rebuilt(tmp_path: Path) -> None:
    """The control for the next test: with the same digest the file alone decides."""
    facts = facts_for_cache()
    spm_merges(facts, tmp_path)
    (kept,) = tmp_path.iterdir()
    before = kept.stat().st_mtime_ns
    spm_merges(facts, tmp_path)
    assert kept.stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "longer", "other"])
def test_a_damaged_file_costs_only_a_rebuild(tmp_path: Path, damage: str) -> None:
    facts = facts_for_cache()
    fresh = spm_merges(facts, tmp_path)
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    other = tmp_path / "other"
    spm_merges(replace(facts, scores=facts.scores[::-1]), other)
    damaged = {
        "cut": whole[:-5],
        "flipped": whole[:-1] + bytes([whole[-1] ^ 1]),
        "empty": b"",
        "longer": whole + bytes(8),
        "other": next(other.iterdir()).read_bytes(),
    }[damage]
    kept.write_bytes(damaged)
    assert spm_merges(facts, tmp_path) == fresh
    assert kept.read_bytes() == whole


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    facts = facts_for_cache()
    blocked = tmp_path / "file"
    blocked.write_bytes(b"in the way")
    assert spm_merges(facts, blocked) == spm_merges(facts, None)
    assert blocked.read_bytes() == b"in the way"


def test_another_vocabulary_has_another_file(tmp_path: Path) -> None:
    facts = facts_for_cache()
    spm_merges(facts, tmp_path)
    spm_merges(replace(facts, scores=facts.scores[::-1]), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
