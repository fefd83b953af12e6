"""What the loop needs of a loaded model, whatever computes it.

A ``Runner`` turns token ids into logits and writes the K and V of each row into the pages that
the row's lane holds. It knows no text, no sampling and no queue. Used from the engine thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from engine.cache.lane import Lane


class Runner(Protocol):
    """A loaded model on one device."""

    @property
    def grid_rows(self) -> int:
        """Rows at whose multiples a prompt chunk begins and a state may be kept (CPU: 256)."""

    @property
    def shares_steps(self) -> bool:
        """Whether rows of several streams may share one step without changing a bit."""

    def prompt_chunk(
        self, lane: Lane, ids: Sequence[int], position: int, *, wants_logits: bool = True
    ) -> torch.Tensor:
        """Compute prompt rows ``position .. position + len(ids)`` of one lane.

        ``position`` is a multiple of ``grid_rows``; ``len(ids)`` is ``grid_rows`` or, in the
        prompt's last chunk, less. The lane already holds pages for every row.

        Args:
            wants_logits: False for a chunk that more prompt follows; it then costs less.

        Returns:
            [vocabulary] float32: the logits of the last row; [0] where they are not wanted.
        """

    def step(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> torch.Tensor:
        """Compute one generated row for each lane.

        Returns:
            [len(lanes), vocabulary] float32, valid until the next call.
        """

    def close(self) -> None:
        """Free the weights, scratch and threads."""
