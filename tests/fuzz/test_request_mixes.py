"""A share of the random mixes of requests; all ten thousand run by hand."""

from __future__ import annotations

from tests.fuzz.request_mixes import run


def test_a_thousand_random_mixes_end_whole_in_order_and_within_the_bound() -> None:
    mixes = run(1000, 0)
    assert max(mix.longest_wait for mix in mixes) >= 8, "the control: some do wait"
