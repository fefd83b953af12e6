"""The fixed-seed part of the mutated GGUF headers; the long counts run by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.checkpoint.source import CheckpointSource
from engine.errors import CheckpointUnreadable
from tests.fuzz.gguf_mutants import Tally, judge, run_real, run_small

FAMILIES = {"consistent", "checkpoint-unreadable", "unsupported-format"}


def _assert_clean(tally: Tally, count: int) -> None:
    assert not tally.findings, tally.findings[0][1]
    assert not tally.failed
    assert tally.outcomes.keys() == FAMILIES
    assert tally.outcomes.total() == count


def test_20000_mutated_small_headers_give_typed_errors_or_consistent_files() -> None:
    _assert_clean(run_small(20_000, seed=1), 20_000)


def test_60_mutated_real_headers_give_typed_errors_or_consistent_files() -> None:
    _assert_clean(run_real(60, seed=1), 60)


def _raise(error: Exception) -> Callable[[], CheckpointSource]:
    def opening() -> CheckpointSource:
        raise error

    return opening


@pytest.mark.parametrize("error", [ValueError("x"), MemoryError(), RecursionError(), KeyError("x")])
def test_an_error_without_a_type_of_ours_is_a_finding(error: Exception) -> None:
    """The control: the run sees what it looks for."""
    tally = Tally()
    judge(_raise(error), 7, tally)
    assert tally.failed
    assert tally.findings[0][0] == 7
    judge(_raise(CheckpointUnreadable("x")), 8, tally)
    assert len(tally.findings) == 1
