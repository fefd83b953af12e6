"""The lines that a person reads, in the order found, failures once more at the end."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.gpu.child import WARM, Finding

LONGEST = 150


class Report:
    """Prints findings as they come; with a file, keeps them there and the JSON only there."""

    def __init__(self, out: Path | None) -> None:
        self._out = out
        self._found: list[Finding] = []
        self._card: dict[str, Any] = {}
        self._lock = threading.Lock()
        if out is not None:
            out.write_text("", "utf-8")

    def add(self, finding: Finding) -> None:
        """Print it; from any thread."""
        with self._lock:
            self._found.append(finding)
            if finding.kind == "card":
                self._card = finding.figures
            if finding.kind != WARM or finding.error:
                self._print(self._line(finding))

    def warmed(self, module: str) -> list[str]:
        """Benches of one module that are compiled and ran once."""
        with self._lock:
            kept = (each for each in self._found if each.kind == WARM and not each.error)
            return [each.name for each in kept if each.module == module]

    def finish(self) -> int:
        """Print what failed, then the JSON; the exit status."""
        failed = [finding for finding in self._found if finding.error]
        count = Counter(finding.kind for finding in self._found if not finding.error)
        self._print(
            f"\n{count['check']} checks passed, {count[WARM]} benches compiled, "
            f"{count['time']} timed, {len(failed)} failed"
        )
        for finding in failed:
            self._print(f"FAILED {finding.kind} {finding.module} {finding.name}\n  {finding.error}")
        times = [asdict(finding) for finding in self._found if finding.kind == "time"]
        record = {"bench": "kernels", "card": self._card, "times": times}
        self._print(json.dumps(record, default=str), shown=self._out is None)
        return 1 if failed else 0

    def _print(self, line: str, *, shown: bool = True) -> None:
        if shown:
            print(line, flush=True)
        if self._out is not None:
            with self._out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    def _line(self, finding: Finding) -> str:
        name = f"{finding.module} {finding.name}".strip()
        if finding.error:
            return f"FAILED {finding.kind} {name[:LONGEST]}: {finding.error[:LONGEST]}"
        if finding.kind == "time":
            return f"time {name:<60} {self._speed(finding.figures)}"
        said = " ".join(f"{key}={_short(value)}" for key, value in finding.figures.items())
        return f"{finding.kind} {name[:LONGEST]} {said}"

    def _speed(self, figures: dict[str, Any]) -> str:
        seconds = figures["median_us"] / 1e6
        parts = [
            f"{figures['median_us']:9.2f} us ({figures['lowest_us']:.2f} - "
            f"{figures['highest_us']:.2f})"
        ]
        for key, limit, unit in (
            ("bytes", "copy_bytes_s", "TB/s"),
            ("flops", "bf16_flops_s", "TFLOP/s"),
        ):
            if figures[key]:
                speed = figures[key] / seconds
                share = f" {100 * speed / self._card[limit]:.0f} %" if limit in self._card else ""
                parts.append(f"{speed / 1e12:.3g} {unit}{share}")
        return "  ".join([*parts, figures["how"]])


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
