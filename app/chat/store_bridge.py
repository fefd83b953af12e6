"""The store's answers on the UI thread: work goes out, a result or an error comes as a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QObject

from app.chat.store import Store
from app.chat.store_thread import StoreThread
from app.desktop.answers import Answers, OnError

Result = TypeVar("Result")


class StoreBridge(Answers):
    """Hands work to the store's thread; ``ask`` returns at once."""

    def __init__(self, thread: StoreThread, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread = thread

    def ask(
        self,
        work: Callable[[Store], Result],
        then: Callable[[Result], None],
        otherwise: OnError | None = None,
    ) -> None:
        """Do ``work`` on the store's thread, after all work handed in before."""
        self.deliver(self._thread.submit(work), then, otherwise)

    def tell(self, work: Callable[[Store], object]) -> None:
        """Do ``work``; only its failure is of interest."""
        self.ask(work, _nothing)


def _nothing(_result: object) -> None:
    """The result of work that is only told."""
