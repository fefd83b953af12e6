"""What a draw reads of a step's logits: candidates that come along, whole rows when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from engine.gpu.names import BOUNDS, CANDIDATES
from engine.gpu.sizes import CANDIDATES as ROOM
from engine.gpu.sizes import candidate_room
from engine.gpu.workspace import Workspace
from engine.sampling.rows import Candidates
from kernels.draw.launch import candidates


class CandidateViews(NamedTuple):
    """One piece of memory seen as ids and values [row, room], and counts [row]."""

    ids: torch.Tensor
    values: torch.Tensor
    counts: torch.Tensor


def candidate_views(words: torch.Tensor, rows: int) -> CandidateViews:
    """``candidate_room(rows)`` int32 words as what they hold."""
    ids, values, counts = words.tensor_split((rows * ROOM, 2 * rows * ROOM))
    shape = rows, ROOM
    return CandidateViews(ids.view(shape), values.view(torch.float32).view(shape), counts)


def find_candidates(logits: torch.Tensor, scratch: Workspace) -> None:
    """Launch the search for the high logits of [rows, vocabulary], into scratch."""
    rows = len(logits)
    words = scratch.view(CANDIDATES, (candidate_room(rows),), torch.int32)
    bounds = scratch.whole(BOUNDS).view(torch.int32)
    candidates(logits, *candidate_views(words, rows), bounds)


class DeviceLogits:
    """Implements ``LogitRows`` over a step's logits, valid until the next call. Owns nothing."""

    def __init__(
        self,
        logits: torch.Tensor,
        words: torch.Tensor,
        fetch: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        """``words`` lie on the host; ``fetch`` brings rows of logits there."""
        self._logits = logits
        self._found = candidate_views(words, len(logits))
        self._fetch = fetch

    def candidates(self, row: int) -> Candidates | None:
        """None where there are more than there was room for."""
        count, vocabulary = int(self._found.counts[row]), self._logits.shape[1]
        if count > ROOM:
            return None
        values = self._found.values[row, :count].numpy().copy()
        ids = self._found.ids[row, :count].numpy().astype(np.int64)
        return Candidates(ids, values, float(values.min()), is_whole=count == vocabulary)

    def whole(self, row: int) -> NDArray[np.float32]:
        """The row, copied from the device."""
        found: NDArray[np.float32] = self._fetch(self._logits[row : row + 1])[0].numpy()
        return found
