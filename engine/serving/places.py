"""Places: what a request is told about where it waits, and for what.

A frame is sent only where it differs from the one before. Used from the engine thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.protocol import Queued, WaitReason
from engine.serving.admission import Shortage
from engine.serving.reply import Send
from engine.serving.request import Phase
from engine.serving.runs import Run, Runs


class Places:
    """Tells everybody who waits how many are before him."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def tell(self, runs: Runs, shortage: Shortage | None, filling: int | None) -> None:
        """Send what has changed.

        Args:
            shortage: the memory that the head of the queue waits for; None where it waits for one
                of those that run.
            filling: whose prompt is being computed.
        """
        reason: WaitReason = "chats-at-once" if shortage is None else "memory"
        for position, run in enumerate(runs.queue(), 1):
            needed, free = 0, 0
            if shortage is not None and position == 1:
                needed, free = shortage.needed_bytes, shortage.free_bytes
            self._tell(
                run,
                Queued(
                    request=run.number,
                    position=position,
                    reason=reason,
                    needed_bytes=needed,
                    free_bytes=free,
                ),
            )
        if filling is not None:
            self._tell_unread(list(runs.running.values()), filling)

    def _tell_unread(self, running: Sequence[Run], filling: int) -> None:
        """Those that have a lane, and whose prompt waits for another one's."""
        unread = [
            run
            for run in running
            if run.number != filling
            and run.stream.phase is Phase.FILLING
            and run.stream.position == run.stream.course.resumed_tokens
        ]
        for position, run in enumerate(unread, 1):
            self._tell(run, Queued(request=run.number, position=position, reason="another-prompt"))

    def _tell(self, run: Run, place: Queued) -> None:
        if place != run.told:
            run.told = place
            self._send(place)
