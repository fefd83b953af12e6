"""``Runner`` on torch alone: the float32 reference, and what runs where no native step can load."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.cache.formats import PAGE_ROWS
from engine.cache.kv import KvArena
from engine.cache.lane import Lane
from engine.cache.recurrent import RecurrentArena
from engine.errors import InvariantBroken
from engine.forward.model import TorchForward, Wanted
from engine.forward.products import Products
from engine.forward.weights import Weights
from engine.models.spec import ModelSpec
from engine.sampling.rows import LogitRows, WholeRows


class TorchRunner:
    """Prompt chunks and one-row steps through ``TorchForward``; used from the engine thread only.

    Owns the products. Implements ``engine.runner.Runner``.
    """

    def __init__(
        self,
        spec: ModelSpec,
        weights: Weights,
        products: Products,
        kv: KvArena,
        recurrent: RecurrentArena | None = None,
    ) -> None:
        self._products = products
        self._forward = TorchForward(spec, weights, products, kv, recurrent)

    @property
    def grid_rows(self) -> int:
        """A chunk is one page: torch's float32 products give a row other bits in other company."""
        return PAGE_ROWS

    @property
    def chunk_rows(self) -> int:
        """One page."""
        return PAGE_ROWS

    @property
    def shares_steps(self) -> bool:
        """No: torch's float32 products give a row other bits beside a second one."""
        return False

    def prompt_chunk(
        self, lane: Lane, ids: Sequence[int], position: int, *, wants_logits: bool = True
    ) -> torch.Tensor:
        """See ``Runner.prompt_chunk``."""
        if position % PAGE_ROWS:
            raise InvariantBroken(f"A prompt chunk begins at {position}, off the grid.")
        if not wants_logits:
            return self._forward.rows(lane, ids, position, Wanted.NOTHING).flatten()
        return self._forward.rows(lane, ids, position, Wanted.LAST)[0]

    def all_logits(self, lane: Lane, ids: Sequence[int], position: int) -> torch.Tensor:
        """A prompt chunk whose every row's logits are returned, for measurements of quality.

        Returns:
            [len(ids), vocabulary] float32.
        """
        return self._forward.rows(lane, ids, position, Wanted.ALL)

    def step(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> torch.Tensor:
        """See ``Runner.step``; the rows are computed one after the other."""
        return torch.cat(
            [
                self._forward.step(lane, token, position)
                for lane, token, position in zip(lanes, ids, positions, strict=True)
            ]
        )

    def step_rows(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> LogitRows:
        """See ``Runner.step_rows``: they lie on the host."""
        return WholeRows(self.step(lanes, ids, positions).numpy())

    def close(self) -> None:
        """Free the weights; may be repeated."""
        self._products.close()
