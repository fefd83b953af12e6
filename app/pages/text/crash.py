"""A report of something that went wrong in the window: what a person reads before giving it away.

Nothing is sent; the person copies or saves it. Pure, but for reading the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.machine.person import without_person
from app.machine.version import VERSION
from app.pages.text.log import read_lines

LOG_LINES: Final = 80


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong: a sentence, and the detail for who mends it."""

    sentence: str
    detail: str


def report_text(fault: Fault, machine: str, log: Sequence[str]) -> str:
    """The whole report, without the person's home and name; chats are in none of its parts."""
    parts = (
        f"Hearth {VERSION}",
        fault.sentence,
        "What happened\n" + (fault.detail.strip() or "not known"),
        "This computer\n" + machine.strip(),
        "The last lines of the log\n" + "\n".join(log),
    )
    return without_person()("\n\n".join(parts)) + "\n"


def last_lines(file: Path) -> tuple[str, ...]:
    """The end of a log."""
    return tuple(line.text for line in read_lines((file,))[-LOG_LINES:])


def crash_of_before(file: Path) -> Fault | None:
    """What the process before this one left when it fell; None where it left nothing.

    The file is emptied, so that each crash is told once.
    """
    try:
        text = file.read_text("utf-8", "replace").strip()
        if text:
            file.write_text("", "utf-8")
    except OSError:
        return None
    return Fault("Hearth closed by itself when it was last open.", text) if text else None
