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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[3]
READY = "ready"
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


class Child:
    """One process; started by ``until_ready``, reaped at its end or when time is up."""

    def __init__(self, kind: str, module: str, device: str, shard: str = "0/1") -> None:
        self._kind, self._module = kind, module
        self._what = (kind, module, device, shard)
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[bytes] = TemporaryFile()  # noqa: SIM115 - closed with the object

    def until_ready(self, ends: float, limit_s: float) -> list[Finding]:
        """Start it; its findings until it is ready to time, or until it ended."""
        ends = min(ends, time.monotonic() + limit_s)
        if time.monotonic() >= ends:
            return [Finding(self._kind, self._module, "", "not started: the time was up")]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if "cpu" in self._what:
            environment["TRITON_INTERPRET"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.gpu.work", *self._what],
            cwd=ROOT, env=environment, text=True, stderr=self._log,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        return self._findings(ends)

    def timed(self, ends: float) -> list[Finding]:
        """Let it time its cases; what it then finds. Nothing where it has ended already."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.closed:
            return []
        process.stdin.write("go\n")
        process.stdin.close()
        return self._findings(ends)

    def _findings(self, ends: float) -> list[Finding]:
        process = self._process
        assert process is not None and process.stdout is not None
        stopper = threading.Timer(max(0.1, ends - time.monotonic()), process.kill)
        stopper.start()
        found: list[Finding] = []
        try:
            for line in process.stdout:
                if not line.startswith("{"):
                    continue
                finding = Finding(**json.loads(line))
                if finding.kind == READY:
                    return found
                found.append(finding)
            return found + self._ended(process, ends)
        finally:
            stopper.cancel()

    def _ended(self, process: subprocess.Popen[str], ends: float) -> list[Finding]:
        """A failure where it did not end by itself and well."""
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
        code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
        if code == 0:
            return []
        self._log.seek(0)
        words = self._log.read().decode("utf-8", "replace")[-LAST_WORDS:]
        why = "ended because the time was up" if time.monotonic() >= ends else f"ended with {code}"
        return [Finding(self._kind, self._module, "", f"{why}: {words}")]
