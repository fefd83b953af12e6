"""Random mixes of requests through the serving: ``python -m tests.fuzz.request_mixes [N] [SEED]``.

Each mix is one fake model with a few pages and a dozen requests of all lengths that come, are
cancelled and resume; see ``tests.helpers.request_mixes`` for what is asserted of it.
"""

from __future__ import annotations

import sys

from tests.helpers.request_mixes import Watched, run_mix

COUNT = 10_000


def run(count: int, seed: int) -> list[Watched]:
    """``count`` mixes; raises AssertionError where one breaks a rule."""
    return [run_mix(seed + number) for number in range(count)]


def main() -> None:
    """Run by hand."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    mixes = run(count, seed)
    longest = max(mix.longest_wait for mix in mixes)
    rounds = sum(mix.rounds for mix in mixes)
    print(f"{len(mixes):,} mixes from seed {seed}: {rounds:,} rounds, the longest wait {longest}")


if __name__ == "__main__":
    main()
