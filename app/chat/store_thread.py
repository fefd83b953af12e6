"""A thread of its own for the store, so that nobody who draws or reads frames waits for a disk.

``StoreThread`` owns the store and the one thread that may touch it. Work is done in the order it
was handed in. A callback of a returned future runs on this thread.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from app.chat.store import OpenedStore, Store

Result = TypeVar("Result")


class StoreThread:
    """The store behind a queue of work."""

    def __init__(self, open_: Callable[[], OpenedStore]) -> None:
        """Open the store on the new thread and wait for that.

        Raises:
            StoreError: as ``open_`` does.
        """
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        try:
            opened = self._executor.submit(open_).result()
        except BaseException:
            self._executor.shutdown()
            raise
        self._store = opened.store
        self.notices = opened.notices

    def submit(self, work: Callable[[Store], Result]) -> Future[Result]:
        """Queue ``work``; the future has its result or its StoreError."""
        return self._executor.submit(work, self._store)

    def close(self) -> None:
        """Do what is queued, close the store, end the thread."""
        self._executor.submit(self._store.close)
        self._executor.shutdown(wait=True)

    def __enter__(self) -> StoreThread:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
