"""Where a prompt's state is kept: a pure choice of grid points.

A state can only be resumed at its own position, and only where a fresh pass would also begin a
chunk, so every wanted place is floored to the grid.
"""

from __future__ import annotations

from collections.abc import Iterable


def choose_marks(
    prompt_tokens: int, wanted: Iterable[int], grid_rows: int, resumed_tokens: int
) -> tuple[int, ...]:
    """The positions at which to keep a state, ascending.

    Args:
        wanted: token counts worth keeping, such as the end of the history or the start of the
            latest user message; the last grid point inside the prompt is always wanted.
        resumed_tokens: what a kept state supplied; nothing at or before it is kept again.

    Returns:
        Multiples of ``grid_rows``, above ``resumed_tokens`` and below ``prompt_tokens``.
    """
    places = {place // grid_rows * grid_rows for place in (*wanted, prompt_tokens - 1)}
    return tuple(sorted(at for at in places if resumed_tokens < at < prompt_tokens))
