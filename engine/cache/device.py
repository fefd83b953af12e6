"""The border to the bytes: what the owners of pages and states ask of whatever holds them.

Page pools, lanes and the store of states deal in page ids and slots. What those stand for lies on a
device: RAM for the processor (``engine.cache.host``), a GPU's memory later, a fake in tests. All
methods are called on the engine thread; each may raise DeviceLost, and then has changed nothing
that anybody may rely on: the caller gives up what it was about to make.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS


class PageDevice(Protocol):
    """The bytes of every page and every recurrent slot of one loaded model.

    The bytes of a page are all its rows, K and V and, where the format has them, scales, of every
    layer of its group, in one fixed order; two pages hold the same rows exactly if their bytes are
    equal up to the rows that were written.
    """

    def page_bytes(self, group: int) -> int:
        """Bytes of one page of a group."""

    @property
    def slot_bytes(self) -> int:
        """Bytes of one recurrent slot; 0 for a model without recurrent layers."""

    def read_page(self, group: int, page: int, out: memoryview) -> None:
        """Copy a page into ``out``, which is exactly ``page_bytes(group)`` long."""

    def write_page(self, group: int, page: int, content: memoryview) -> None:
        """Make a page what ``content`` says."""

    def copy_page(self, group: int, source: int, target: int, rows: int = PAGE_ROWS) -> None:
        """Make the first ``rows`` rows of a page those of another, and its other rows zeros."""

    def read_slot(self, slot: int, out: memoryview) -> None:
        """Copy a recurrent slot into ``out``, which is exactly ``slot_bytes`` long."""

    def write_slot(self, slot: int, content: memoryview) -> None:
        """Make a recurrent slot what ``content`` says."""

    def upload_table(self, group: int, table: NDArray[np.int32]) -> None:
        """Have the device see a lane's block table as it is now; the array is the lane's own.

        Called before pages that the old table named are given up.
        """
