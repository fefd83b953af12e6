"""Results of work done elsewhere, delivered as calls on the UI thread.

``Answers`` delivers the results of futures; ``Background`` also owns one thread for work on files.
The window never waits for either.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, Signal

from app.errors import AppError

Result = TypeVar("Result")
OnError = Callable[[AppError], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one piece of work came to, and whom to tell. ``then`` takes the work's result."""

    then: Callable[[Any], None]
    otherwise: OnError | None
    future: Future[Any]


class Answers(QObject):
    """Delivers results. Emits ``failed`` with an AppError that nobody else takes."""

    failed = Signal(object)
    _answered = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._open = True
        self._answered.connect(self._on_answered, Qt.ConnectionType.QueuedConnection)

    def deliver(
        self,
        future: Future[Result],
        then: Callable[[Result], None],
        otherwise: OnError | None = None,
    ) -> None:
        """Call ``then`` with the future's result on this object's thread.

        Args:
            future: work that was handed to a thread.
            then: takes the result.
            otherwise: takes an AppError of the work; without it ``failed`` is emitted.
        """
        future.add_done_callback(lambda done: self._post(Answer(then, otherwise, done)))

    def close(self) -> None:
        """Drop answers that are still on their way."""
        self._open = False

    def _post(self, answer: Answer) -> None:
        if self._open:
            self._answered.emit(answer)

    def _on_answered(self, answer: Answer) -> None:
        if not self._open:
            return
        error = answer.future.exception()
        if error is None:
            answer.then(answer.future.result())
        elif not isinstance(error, AppError):
            raise error
        elif answer.otherwise is not None:
            answer.otherwise(error)
        else:
            self.failed.emit(error)


class Background(Answers):
    """One thread for looking at files. Owns the thread."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="background")

    def ask(
        self,
        work: Callable[[], Result],
        then: Callable[[Result], None],
        otherwise: OnError | None = None,
    ) -> None:
        """Do ``work`` on the thread, then call ``then`` on this one."""
        self.deliver(self._executor.submit(work), then, otherwise)

    def close(self) -> None:
        """End the thread after what it is doing."""
        super().close()
        self._executor.shutdown(wait=True, cancel_futures=True)
