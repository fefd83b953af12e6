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

    @property
    def only_lower(self) -> bool:
        """Whether no edit ever raises a logit."""
        rule = self._rule
        return rule.repetition >= 1.0 and rule.presence >= 0.0 and rule.frequency >= 0.0

    def apply(self, logits: NDArray[np.float32], known: NDArray[np.int64] | None = None) -> None:
        """Edit logits in place.

        Args:
            logits: [vocabulary], or those of ``known``.
            known: ids, ascending; None for all.
        """
        if self._said:
            ids = np.fromiter(self._said, np.int64, len(self._said))
            at, _ = _places(ids, known)
            found = logits[at].astype(np.float64)
            factor = self._rule.repetition
            logits[at] = np.where(found > 0.0, found / factor, found * factor)
        if self._counts:
            ids = np.fromiter(self._counts, np.int64, len(self._counts))
            times = np.fromiter(self._counts.values(), np.float64, len(self._counts))
            at, there = _places(ids, known)
            found = logits[at].astype(np.float64)
            logits[at] = found - (self._rule.presence + self._rule.frequency * times[there])
        if len(self._suppressed):
            logits[_places(self._suppressed, known)[0]] = -np.inf


def _places(
    ids: NDArray[np.int64], known: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where those of ``ids`` stand that are known, and which of them these are."""
    if known is None:
        return ids, np.ones(len(ids), np.bool_)
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    there: NDArray[np.bool_] = known[at] == ids
    return at[there], there
