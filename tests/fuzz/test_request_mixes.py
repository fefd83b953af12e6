"""Ten thousand random mixes of requests through the serving of a fake model."""

from __future__ import annotations

import pytest

from tests.helpers.request_mixes import run_mix


@pytest.mark.parametrize("thousand", range(10))
def test_a_thousand_random_mixes_end_whole_in_order_and_within_the_bound(thousand: int) -> None:
    mixes = [run_mix(1000 * thousand + seed) for seed in range(1000)]
    assert max(mix.longest_wait for mix in mixes) >= 8
    assert min(mix.rounds for mix in mixes) >= 1
