"""One thread that does the disk tier's file work, job after job.

Owns the thread and the jobs that wait. Jobs may be added from any thread. A job takes care of its
own OSErrors. The thread is started by the first job, and a daemon: what it has not done when the
process ends costs nothing but a prefill.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from engine.owner import Owner

Job = Callable[[], None]
NAME: Final = "kept-states"


class Worker(Owner):
    """Runs jobs in the order in which they came, but for those put in front."""

    def __init__(self, idle: Job, every_s: float) -> None:
        """Also run ``idle`` when ``every_s`` seconds have passed, after the job then running."""
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False
        self._ended = False
        self._idle = idle
        self._every_s = every_s
        self._most_s = math.inf

    def add(self, job: Job) -> None:
        """Run it after all others."""
        self._put(job, first=False)

    def add_first(self, job: Job) -> None:
        """Run it before all others that wait."""
        self._put(job, first=True)

    def call(self, job: Job, limit_s: float) -> bool:
        """Run it before all others that wait; False where it has not ended after ``limit_s``."""
        done = threading.Event()

        def run() -> None:
            job()
            done.set()

        return self._put(run, first=True) and done.wait(limit_s)

    def flush(self, limit_s: float) -> bool:
        """Wait until nothing is left to do; False where that takes longer than it may."""
        began = time.monotonic()
        with self._changed:
            while self._jobs or self._busy:
                left = began + min(limit_s, self._most_s) - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def hurry(self, most_s: float) -> None:
        """From now on no flush, the one under way included, takes longer than ``most_s``."""
        with self._changed:
            self._most_s = most_s
            self._changed.notify_all()

    def close(self) -> None:
        """Drop the jobs that wait and end the thread once the one under way has ended."""
        with self._changed:
            self._ended = True
            self._jobs.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _put(self, job: Job, *, first: bool) -> bool:
        """Queue a job; False once the worker has ended."""
        with self._changed:
            if self._ended:
                return False
            if first:
                self._jobs.appendleft(job)
            else:
                self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return True

    def _run(self) -> None:
        due = time.monotonic() + self._every_s
        while (job := self._next(due)) is not None:
            job()
            if time.monotonic() >= due:
                if job is not self._idle:
                    self._idle()
                due = time.monotonic() + self._every_s
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _next(self, due: float) -> Job | None:
        """The next job, ``idle`` where its time has come first, None at the end."""
        with self._changed:
            while not self._jobs and not self._ended:
                left = due - time.monotonic()
                if left <= 0:
                    self._busy = True
                    return self._idle
                self._changed.wait(left)
            if self._ended:
                return None
            self._busy = True
            return self._jobs.popleft()
