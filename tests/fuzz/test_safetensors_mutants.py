"""The fixed-seed part of the mutated published checkpoints; the long counts run by hand."""

from __future__ import annotations

from tests.fuzz.safetensors_mutants import run

COUNT = 2_000


def test_2000_mutated_folders_give_typed_errors_or_consistent_checkpoints() -> None:
    tally = run(COUNT, seed=1)
    assert not tally.findings, tally.findings[0][1]
    assert not tally.failed
    assert tally.outcomes.keys() == {"consistent", "checkpoint-unreadable", "unsupported-format"}
    assert tally.outcomes.total() == COUNT
