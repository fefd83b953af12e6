"""Upkeep: what is done beside requests, and who is told when it has ended.

Owns the background passes and those who asked to be told. Used from the engine thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.protocol import Settled
from engine.serving.admission import Served
from engine.serving.background import Background
from engine.serving.reply import Clock, Send

POWER_PAUSE_S: Final = 30.0
"""How often a machine on battery is asked whether it is plugged in."""


class Upkeep:
    """Background passes and write-back of one loaded model."""

    def __init__(
        self, served: Served, send: Send, clock: Clock, on_battery: Callable[[], bool]
    ) -> None:
        self._send = send
        self._clock = clock
        self._settling: list[tuple[int, int]] = []
        self.background = Background(served, clock, on_battery)

    @property
    def has_work(self) -> bool:
        """Whether ``idle`` would do anything."""
        return self.background.has_work

    @property
    def pause_s(self) -> float | None:
        """How long the loop may wait for messages while no request runs; None for ever."""
        if self.has_work:
            return 0.0
        return POWER_PAUSE_S if self.background.waits_for_power else None

    def idle(self) -> None:
        """Do a piece of work while no request waits or runs."""
        if self.background.has_work:
            self.background.step()
        self._tell_settled()

    def busy(self) -> None:
        """A round of requests has passed."""
        self._tell_settled()

    def settle(self, request: int, most_ms: float) -> None:
        """Tell when nothing is left to do, or the time is over."""
        self._settling.append((request, self._clock() + int(most_ms * 1e6)))
        self._tell_settled()

    def close(self) -> None:
        """End the passes; who waits is told that it is over."""
        self.background.close()
        self._tell(len(self._settling))

    def _tell_settled(self) -> None:
        if not self.has_work:
            self._tell(len(self._settling))
            return
        now = self._clock()
        self._settling.sort(key=lambda pair: pair[1])
        self._tell(sum(1 for _, until in self._settling if until <= now))

    def _tell(self, count: int) -> None:
        told, self._settling = self._settling[:count], self._settling[count:]
        for request, _ in told:
            self._send(Settled(request=request, waiting_bytes=0))
