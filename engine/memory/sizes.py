"""Sizes in sentences for people: GiB with one decimal that never make a refusal look like a fit.

What is needed or held rounds up, what is free or there in all rounds down; so where more is needed
than is free, the sentence shows two different numbers. Exact, no floating point.
"""

from __future__ import annotations

import re
from typing import Final

GIBIBYTE: Final = 1 << 30

_GPU: Final = re.compile(r"gpu(\d+)")
_WORDS: Final = {"ram": "RAM", "pinned": "pinned RAM", "disk": "disk space"}


def gib(size_bytes: int, *, up: bool = False) -> str:
    """A size such as "5.2", without its unit; ``up`` is for what is needed or held."""
    tenths = size_bytes * 10
    tenths = -(-tenths // GIBIBYTE) if up else tenths // GIBIBYTE
    return f"{tenths // 10:,}.{tenths % 10}"


def pool_words(pool: str) -> str:
    """A pool in words, such as "GPU memory"; a second GPU is numbered as the system numbers it."""
    gpu = _GPU.fullmatch(pool)
    if gpu is None:
        return _WORDS.get(pool, pool)
    return "GPU memory" if gpu[1] == "0" else f"memory of GPU {gpu[1]}"
