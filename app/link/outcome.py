"""How an engine process ended: the facts as a record, with the sentences they make."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """The facts about one ended life of the engine.

    Attributes:
        pid: 0 when the process could not even be started.
        exit_code: None while a signal ended it or it never ran.
        signal: the number of the signal that ended it, None otherwise.
        lived_s: from the start to the end.
        ready: the handshake was made.
        asked: the app asked it to end.
        fault: what the app found wrong with it, in one sentence, where that made it end.
        log_tail: the last lines of its log.
    """

    pid: int
    exit_code: int | None
    signal: int | None
    lived_s: float
    ready: bool
    asked: bool
    fault: str | None = None
    log_tail: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether it ended as it was asked to."""
        return self.asked and self.exit_code == 0 and self.fault is None

    @property
    def sentence(self) -> str:
        """What a person reads: what happened, no numbers of the system."""
        if self.asked and self.fault is None:
            return "The engine was stopped."
        if self.pid == 0:
            return f"The engine cannot be started: {self.fault}"
        if self.fault is not None:
            return f"The engine was ended: {self.fault}"
        if not self.ready:
            return "The engine stopped while it was starting."
        if self.signal is not None and self.signal == getattr(signal, "SIGKILL", 9):
            return "Something ended the engine; often that is the system when memory runs out."
        return "The engine stopped unexpectedly."

    @property
    def detail(self) -> str:
        """The facts for "Show details" and for a report: numbers and the end of the log."""
        if self.signal is not None:
            how = f"signal {self.signal} ({_signal_name(self.signal)})"
        elif self.exit_code is not None:
            how = f"exit code {self.exit_code}"
        else:
            how = "not started"
        head = f"engine pid={self.pid} {how} lived={self.lived_s:.1f}s ready={self.ready}"
        return "\n".join((head, *self.log_tail))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
