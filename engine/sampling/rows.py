"""Rows of logits as a draw asks for them: a few candidates where these do, else the whole row.

Logits may lie on another device, from where a whole row costs a copy and a pass over the
vocabulary. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Candidates:
    """The high logits of one row: every logit that is not among them is lower than ``bound``.

    Attributes:
        ids: [candidate] int64, ascending.
        values: [candidate] float32, the caller's to edit.
        bound: the lowest of the values as they came.
        is_whole: whether they are all that the row has.
    """

    ids: NDArray[np.int64]
    values: NDArray[np.float32]
    bound: float
    is_whole: bool = False


class LogitRows(Protocol):
    """Rows of logits, valid until the runner's next call."""

    def candidates(self, row: int) -> Candidates | None:
        """The high logits of a row, in memory of the caller's own; None where only all will do."""

    def whole(self, row: int) -> NDArray[np.float32]:
        """[vocabulary] float32 on the host, the caller's to edit."""


class WholeRows:
    """Implements ``LogitRows`` over rows that lie on the host: [row, vocabulary] float32."""

    def __init__(self, logits: NDArray[np.float32]) -> None:
        self._logits = logits

    def candidates(self, _row: int) -> Candidates | None:
        """None: the whole row is there."""
        return None

    def whole(self, row: int) -> NDArray[np.float32]:
        """The row itself."""
        found: NDArray[np.float32] = self._logits[row]
        return found
