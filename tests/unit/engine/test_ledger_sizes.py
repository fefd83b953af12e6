"""Sizes in sentences: one decimal, and two different numbers wherever something does not fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory.sizes import GIBIBYTE, gib, pool_words


@pytest.mark.parametrize(
    ("size", "down", "up"),
    [
        (0, "0.0", "0.0"),
        (1, "0.0", "0.1"),
        (GIBIBYTE, "1.0", "1.0"),
        (GIBIBYTE + 1, "1.0", "1.1"),
        (12 * GIBIBYTE - 1, "11.9", "12.0"),
        (1024 * GIBIBYTE, "1,024.0", "1,024.0"),
    ],
)
def test_what_is_free_rounds_down_and_what_is_needed_rounds_up(
    size: int, down: str, up: str
) -> None:
    assert (gib(size), gib(size, up=True)) == (down, up)


@given(st.integers(0, 1 << 45), st.integers(1, 1 << 45))
def test_more_than_is_free_never_looks_like_as_much_as_is_free(free: int, more: int) -> None:
    def number(text: str) -> float:
        return float(text.replace(",", ""))

    assert number(gib(free + more, up=True)) > number(gib(free))
    assert number(gib(free)) <= free / GIBIBYTE < number(gib(free)) + 0.1001


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        ("ram", "RAM"),
        ("pinned", "pinned RAM"),
        ("disk", "disk space"),
        ("gpu0", "GPU memory"),
        ("gpu12", "memory of GPU 12"),
        ("other", "other"),
    ],
)
def test_pools_have_words(pool: str, words: str) -> None:
    assert pool_words(pool) == words
