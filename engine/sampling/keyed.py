"""The keyed sampler: a token drawn by (seed, absolute position, token id) and nothing else.

Pure. Candidates are ordered by (logit descending, id ascending) and cut to the top-k, then top-p,
then min-p prefix, the probabilities being those at the temperature. Of what is left the highest
``logit / temperature + Gumbel(u)`` wins, with u a hash of the key; that draws each candidate with
its softmax probability, and no batch, lane, draft or time can change the outcome. All in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.errors import DeviceLost
from engine.sampling.rows import Candidates

GREEDY_TEMPERATURE: Final = 1e-5
SEED_BITS: Final = 53

_FOLD_ROWS: Final = 64
_FIRST_NUCLEUS: Final = 512
_GOLDEN: Final = 0x9E3779B97F4A7C15
_MASK: Final = 0xFFFFFFFFFFFFFFFF

Logits = NDArray[np.float32]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DrawRule:
    """How one stream draws; valid values only (``engine.sampling.settings`` checks them).

    Attributes:
        temperature: below GREEDY_TEMPERATURE greedy.
        top_k: candidates kept, 0 for all.
        top_p: smallest prefix with this share of the probability; 0 greedy, 1 off.
        min_p: least probability relative to the best candidate's; 0 off, 1 greedy.
    """

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int

    @property
    def is_greedy(self) -> bool:
        """Whether the best candidate always wins."""
        return (
            self.temperature < GREEDY_TEMPERATURE
            or self.top_k == 1
            or self.top_p == 0.0
            or self.min_p == 1.0
        )


def derive_seed(prompt_ids: NDArray[np.int32], sibling: int) -> int:
    """The seed of a request that gives none; below 2 ** SEED_BITS, so any JSON reader keeps it."""
    digest = blake2b(prompt_ids.astype("<i4").tobytes(), digest_size=8)
    digest.update(sibling.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little") >> (64 - SEED_BITS)


def draw(logits: Logits, rule: DrawRule, position: int) -> int:
    """Draw the token at an absolute position.

    Args:
        logits: [vocabulary]; -inf excludes a token; only read.
        position: of the token that is drawn, the prompt's first one being 0.

    Raises:
        DeviceLost: the best logit is no finite number.
    """
    if rule.is_greedy:
        return _best(logits)
    ids = _candidates(logits, rule)
    return int(ids[_winner(logits[ids], ids, rule, position)])


def draw_among(candidates: Candidates, rule: DrawRule, position: int) -> int | None:
    """Draw from a row's high logits what ``draw`` gives for the row, to the bit.

    Their values may have been lowered since they came, and so may any other logit: then those that
    are still at the bound or above are all that the row has there.

    Returns:
        None where the whole row is needed.

    Raises:
        DeviceLost: the best logit is no finite number.
    """
    known, values = candidates.ids, candidates.values
    best = float(values.max())
    if not best < np.inf:
        _check_finite(best)
    if not candidates.is_whole:
        held = values >= candidates.bound
        if not held.all():
            known, values = known[held], values[held]
        if not _suffice(values, candidates.bound, rule):
            return None
    if rule.is_greedy:
        return int(known[_best(values)])
    at = _candidates(values, rule)
    return int(known[at[_winner(values[at], known[at], rule, position)]])


def _suffice(values: Logits, bound: float, rule: DrawRule) -> bool:
    """Whether the logits at the bound and above decide the draw."""
    found = int((values > -np.inf).sum())
    if rule.is_greedy or rule.top_k > 0:
        return found >= (1 if rule.is_greedy else rule.top_k)
    if rule.min_p == 0.0 or rule.top_p < 1.0 or found == 0:
        return False
    return bool(_least(float(values.max()), rule) >= bound)


def _best(logits: Logits) -> int:
    best = int(np.argmax(logits))
    _check_finite(float(logits[best]))
    return best


def _winner(logits: Logits, ids: Ids, rule: DrawRule, position: int) -> int:
    """Which of the ordered candidates has the highest score."""
    scores = logits.astype(np.float64) / rule.temperature
    scores -= np.log(-np.log(uniform(rule.seed, position, ids)))
    return int(np.argmax(scores))


def _least(best: float, rule: DrawRule) -> np.float64:
    """The lowest logit that min-p leaves; compared in float64."""
    return np.float64(best + rule.temperature * np.log(rule.min_p))


def uniform(seed: int, position: int, ids: Ids) -> NDArray[np.float64]:
    """Hash (seed, position, token id) to u, 0 < u < 1, for each id: splitmix64's mixing, twice."""
    key = np.uint64(_mixed_word(_mixed_word(seed & _MASK) + (position + 1) * _GOLDEN & _MASK))
    words = _mixed(key + (ids.astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN))
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) / float(1 << 52)


def _mixed_word(word: int) -> int:
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _MASK
    return word ^ word >> 31


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _candidates(logits: Logits, rule: DrawRule) -> Ids:
    """Ids that may be drawn, in order."""
    best = float(logits.max())
    _check_finite(best)
    if rule.top_k > 0:
        ids = _highest(logits, rule.top_k)
        weights = _weights(logits[ids], best, rule.temperature)
        return ids[: _prefix(weights, float(weights.sum()), rule)]
    if rule.min_p > 0.0:
        ids = _ordered(logits, np.flatnonzero(logits >= _least(best, rule)))
        if rule.top_p < 1.0:
            total = float(_weights(logits, best, rule.temperature).sum())
            ids = ids[: _prefix(_weights(logits[ids], best, rule.temperature), total, rule)]
        return ids
    if rule.top_p == 1.0:
        return np.flatnonzero(logits > -np.inf)
    return _nucleus(logits, best, rule)


def _nucleus(logits: Logits, best: float, rule: DrawRule) -> Ids:
    """The top-p prefix of the whole vocabulary, sorting no more of it than needed."""
    total = float(_weights(logits, best, rule.temperature).sum())
    count = _FIRST_NUCLEUS
    while True:
        ids = _highest(logits, count)
        weights = _weights(logits[ids], best, rule.temperature)
        if len(ids) < count or float(weights.sum()) >= rule.top_p * total:
            return ids[: _prefix(weights, total, rule)]
        count *= 8


def _weights(logits: Logits, best: float, temperature: float) -> NDArray[np.float64]:
    """Unnormalised probabilities, the best candidate's being 1."""
    return np.exp((logits.astype(np.float64) - best) / temperature)


def _prefix(weights: NDArray[np.float64], total: float, rule: DrawRule) -> int:
    """How many of the ordered candidates top-p and then min-p leave; at least one."""
    count = len(weights)
    if rule.top_p < 1.0:
        count = min(count, int(np.searchsorted(np.cumsum(weights), rule.top_p * total)) + 1)
    return max(1, int((weights[:count] >= rule.min_p).sum()))


def _highest(logits: Logits, count: int) -> Ids:
    """The ``count`` highest finite logits' ids, ordered by (logit descending, id ascending).

    The count-th highest of the column maxima of a folded view is a lower bound of the count-th
    highest logit, so one pass of comparisons leaves little more than ``count`` to sort.
    """
    bound = logits
    width = len(logits) // _FOLD_ROWS
    if width > count:
        bound = logits[: width * _FOLD_ROWS].reshape(_FOLD_ROWS, width).max(axis=0)
    least = np.float32(-np.inf)
    if len(bound) > count:
        least = np.partition(bound, len(bound) - count)[len(bound) - count]
    chosen = logits >= least if least > -np.inf else logits > least
    return _ordered(logits, np.flatnonzero(chosen))[:count]


def _ordered(logits: Logits, ids: Ids) -> Ids:
    """Ascending ids put in candidate order: the sort is stable."""
    return ids[np.argsort(-logits[ids], kind="stable")]


def _check_finite(best: float) -> None:
    if not np.isfinite(best):
        raise DeviceLost(f"The model computed no usable probabilities: the best logit is {best}.")
