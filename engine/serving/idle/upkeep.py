"""Upkeep: what is done beside requests, and who is told when it has ended.

Background passes come first, then what the lower tiers lack of the kept states is copied down.
While requests run, copying gets a small share of the time. Owns the passes and those who asked to
be told. Used from the engine thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.protocol import ChatTiers, Settled
from engine.serving.admission import Served
from engine.serving.idle.background import Background
from engine.serving.reply import Clock, Send

LOOK_PAUSE_S: Final = 1.0
"""How often is looked where nothing is to be done: another thread may have read or deleted kept
states since, and a machine on battery may be plugged in."""
STALLED_PAUSE_S: Final = 0.02
"""How long messages are waited for where the disk has to go on first."""
WRITE_SHARE: Final = 0.005
"""Of the time of running requests, what copying states down may take. What the disk's thread then
does with the copies takes up to twice as much again; together they stay under 2 %."""
BUSY_STEP_BYTES: Final = 4 << 20
LEAST_CREDIT_NS: Final = 1_000_000
MOST_CREDIT_NS: Final = 20_000_000


class Upkeep:
    """Background passes and write-back of one loaded model."""

    def __init__(
        self, served: Served, send: Send, clock: Clock, on_battery: Callable[[], bool]
    ) -> None:
        self._states = served.states
        self._send = send
        self._clock = clock
        self._settling: list[tuple[int, int]] = []
        self._running: frozenset[str] = frozenset()
        self._may_write = False
        self._reads_stall = False
        self._write_pause_s = 0.0
        self._credit_ns = 0
        self._write_ns = 0
        self.background = Background(served, clock, on_battery)

    @property
    def has_work(self) -> bool:
        """Whether anything is left to be done."""
        return self.background.has_work or self._may_write

    @property
    def pause_s(self) -> float:
        """How long the loop may wait for messages while no request runs."""
        if self.background.has_work:
            return STALLED_PAUSE_S if self._reads_stall else 0.0
        if self._may_write:
            return self._write_pause_s
        return LOOK_PAUSE_S

    def idle(self) -> None:
        """Do a piece of work while no request waits or runs."""
        if self.background.has_work:
            self._reads_stall = not self.background.step()
            self._may_write = True
            self._stand(frozenset())
        else:
            self._stand(frozenset())
            self._write()
        self._tell()

    def busy(self, running: frozenset[str], round_ns: int) -> None:
        """A round of requests has passed.

        Args:
            running: the chats of which a request waits or runs.
        """
        self._stand(running)
        self._may_write = True
        self._credit_ns = min(MOST_CREDIT_NS, self._credit_ns + int(round_ns * WRITE_SHARE))
        if self._credit_ns > self._write_ns:
            began_ns = self._clock()
            if self._states.write_step(BUSY_STEP_BYTES):
                self._write_ns = self._clock() - began_ns
                self._credit_ns -= self._write_ns
            else:
                self._credit_ns, self._write_ns = 0, LEAST_CREDIT_NS
        self._tell()

    def settle(self, request: int, most_ms: float) -> None:
        """Tell when nothing is left to do, or the time is over."""
        self._settling.append((request, self._clock() + int(most_ms * 1e6)))
        self._tell()

    def close(self) -> None:
        """End the passes; who waits is told that it is over."""
        self.background.close()
        self._may_write = False
        self._tell_settled(len(self._settling))

    def _write(self) -> None:
        """Copy down; where the disk has to go on first, wait for it longer and longer."""
        if self._states.write_step():
            self._write_pause_s = 0.0
            return
        longest_s = STALLED_PAUSE_S if self._settling else LOOK_PAUSE_S
        self._write_pause_s = min(longest_s, max(STALLED_PAUSE_S, 2 * self._write_pause_s))
        self._may_write = self._states.census().waiting_bytes > 0

    def _stand(self, running: frozenset[str]) -> None:
        """Tell the store whose states are about to be followed by newer ones."""
        reading = self.background.conversation
        if reading is not None:
            running |= {reading}
        if running != self._running:
            self._running = running
            self._states.set_running(running)

    def _tell(self) -> None:
        """Tell the tiers where they have changed, and those whose time is over."""
        tiers = self._states.tiers()
        if tiers is not None:
            self._send(ChatTiers(chats=tiers))
        if not self.has_work:
            self._tell_settled(len(self._settling))
            return
        now = self._clock()
        self._settling.sort(key=lambda pair: pair[1])
        self._tell_settled(sum(1 for _, until in self._settling if until <= now))

    def _tell_settled(self, count: int) -> None:
        told, self._settling = self._settling[:count], self._settling[count:]
        for request, _ in told:
            waiting_bytes = self._states.census().waiting_bytes
            self._send(Settled(request=request, waiting_bytes=waiting_bytes))
