"""A few kills of a process that keeps states, in every run; many by hand."""

from __future__ import annotations

from tests.fuzz.state_kills import run


def test_a_killed_writer_leaves_states_that_read_back_equal_and_nothing_else() -> None:
    found = run(4, seed=5)
    assert found["kills"] == 4 and found["states"] > 0
