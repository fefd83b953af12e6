"""Penalties and suppression: logits edited by what a stream has said already.

Owns the counts of one stream. Used from the engine thread. Repetition looks at prompt and reply;
presence and frequency look at the reply alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PenaltyRule:
    """Strengths; valid values only.

    Attributes:
        repetition: positive logits are divided by it, others multiplied; 1 is off.
        presence: subtracted once from a token that occurred; 0 is off.
        frequency: subtracted for each time a token occurred; 0 is off.
    """

    repetition: float = 1.0
    presence: float = 0.0
    frequency: float = 0.0


class Penalties:
    """What one stream has said, and the edits that follow from it."""

    def __init__(
        self, rule: PenaltyRule, prompt_ids: Sequence[int], suppressed_ids: Sequence[int]
    ) -> None:
        self._rule = rule
        self._suppressed = np.array(suppressed_ids, np.int64)
        self._said = dict.fromkeys(prompt_ids) if rule.repetition != 1.0 else {}
        self._counts: dict[int, int] = {}

    def count(self, token: int) -> None:
        """Take note of a generated token."""
        if self._rule.repetition != 1.0:
            self._said[token] = None
        if self._rule.presence != 0.0 or self._rule.frequency != 0.0:
            self._counts[token] = self._counts.get(token, 0) + 1

    def apply(self, logits: NDArray[np.float32]) -> None:
        """Edit [vocabulary] logits in place."""
        if self._said:
            ids = np.fromiter(self._said, np.int64, len(self._said))
            found = logits[ids].astype(np.float64)
            factor = self._rule.repetition
            logits[ids] = np.where(found > 0.0, found / factor, found * factor)
        if self._counts:
            ids = np.fromiter(self._counts, np.int64, len(self._counts))
            times = np.fromiter(self._counts.values(), np.float64, len(self._counts))
            found = logits[ids].astype(np.float64)
            logits[ids] = found - (self._rule.presence + self._rule.frequency * times)
        if len(self._suppressed):
            logits[self._suppressed] = -np.inf
