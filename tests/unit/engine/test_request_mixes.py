"""Random mixes of requests: never over capacity, none starves, the queue keeps its order.

The fixed-seed part; ``tests/fuzz`` runs ten thousand.
"""

from __future__ import annotations

from tests.helpers.request_mixes import run_mix


def test_random_mixes_end_whole_in_order_and_within_the_bound() -> None:
    """``run_mix`` checks each round; here that the mixes do meet what they are to meet."""
    mixes = [run_mix(seed) for seed in range(30)]
    assert max(mix.longest_wait for mix in mixes) >= 4
    assert sum(mix.refused for mix in mixes) > 0
    assert sum(mix.resumed for mix in mixes) > 0
