"""When a dead engine is started again. Pure: it counts and decides, it does not wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

BACK_OFF_S: Final = (0.2, 1.0, 2.0, 5.0, 10.0, 30.0)
PROVED_S: Final = 60.0
START_LIMIT: Final = 3


@dataclass(slots=True)
class RestartPolicy:
    """Back-off that grows with deaths in a row, and an end for an engine that cannot start.

    A life that answered a request or lasted ``proved_s`` ends the row.

    Attributes:
        back_off_s: seconds before the first, second, ... restart of a row; the last repeats.
        start_limit: starts without a handshake in a row after which the policy gives up.
    """

    back_off_s: tuple[float, ...] = BACK_OFF_S
    proved_s: float = PROVED_S
    start_limit: int = START_LIMIT
    _deaths: int = field(default=0, init=False)
    _failed_starts: int = field(default=0, init=False)

    def delay_s(self, *, ready: bool, useful: bool, lived_s: float) -> float | None:
        """Seconds until the next start after a death, None to give up.

        Args:
            ready: the handshake was made in that life.
            useful: a request was answered in that life.
            lived_s: how long it lived.
        """
        if useful or (ready and lived_s >= self.proved_s):
            self._deaths = 0
        self._failed_starts = 0 if ready else self._failed_starts + 1
        if self._failed_starts >= self.start_limit:
            self._failed_starts = 0
            return None
        delay = self.back_off_s[min(self._deaths, len(self.back_off_s) - 1)]
        self._deaths += 1
        return delay
