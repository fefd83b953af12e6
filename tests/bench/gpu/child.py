"""One process that checks or times one kernel's cases, and the side that starts it.

The child writes one line of JSON a finding to its standard output. Before it times anything it
says that it is ready, and waits for a line on its standard input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[3]
READY = "ready"
WARM = "warm"
LAST_WORDS = 1500


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Attributes:
        kind: "check", "time", "card", "warm" or "ready".
        error: a sentence; "" where all is well.
        figures: of a check what it returned; of a time median_us, lowest_us, highest_us, and
            bytes and flops of one call.
    """

    kind: str
    module: str
    name: str
    error: str = ""
    figures: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """As the child writes it."""
        return json.dumps(asdict(self), default=str)


Tell = Callable[[Finding], None]


class Child:
    """One process; started by ``until_ready``, reaped at its end or when time is up."""

    def __init__(self, kind: str, module: str, device: str, shard: str = "0/1") -> None:
        self.kind, self.module = kind, module
        self._what = (kind, module, device, shard)
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[bytes] = TemporaryFile()  # noqa: SIM115 - closed with the object

    def until_ready(self, tell: Tell, ends: float, limit_s: float) -> None:
        """Start it; tell its findings until it is ready to time, or until it ended."""
        ends = min(ends, time.monotonic() + limit_s)
        if time.monotonic() >= ends:
            return tell(Finding(self.kind, self.module, "", "not started: the time was up"))
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if "cpu" in self._what:
            environment["TRITON_INTERPRET"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.gpu.work", *self._what],
            cwd=ROOT, env=environment, text=True, stderr=self._log,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        return self._follow(tell, ends)

    def timed(self, tell: Tell, ends: float, names: Sequence[str]) -> None:
        """Let it time the cases of those names; nothing where it has ended already."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.closed:
            return
        process.stdin.write(json.dumps(list(names)) + "\n")
        process.stdin.close()
        self._follow(tell, ends)

    def _follow(self, tell: Tell, ends: float) -> None:
        process = self._process
        assert process is not None and process.stdout is not None
        stopper = threading.Timer(max(0.1, ends - time.monotonic()), process.kill)
        stopper.start()
        try:
            for line in process.stdout:
                if not line.startswith("{"):
                    continue
                finding = Finding(**json.loads(line))
                if finding.kind == READY:
                    return
                tell(finding)
            self._end(tell, process, ends)
        finally:
            stopper.cancel()

    def _end(self, tell: Tell, process: subprocess.Popen[str], ends: float) -> None:
        """Tell a failure where it did not end by itself and well; compiling may be cut short."""
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
        code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
        late = time.monotonic() >= ends
        if code == 0 or (late and self.kind == WARM):
            return
        self._log.seek(0)
        words = self._log.read().decode("utf-8", "replace")[-LAST_WORDS:]
        why = "ended because the time was up" if late else f"ended with {code}"
        tell(Finding(self.kind, self.module, "", f"{why}: {words}"))
