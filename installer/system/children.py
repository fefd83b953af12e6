"""Runs one child program, line by line, and ends it when set-up is interrupted."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

KEPT_LINES = 2000


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit code, and the last lines of what it printed."""

    code: int
    output: str


def run(
    command: Sequence[str | Path],
    on_line: Callable[[str], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run ``command`` to its end; stdout and stderr together go to ``on_line``.

    A program that is not there counts as ended with code 127.
    """
    words = [str(word) for word in command]
    lines: list[str] = []
    try:
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=None if environment is None else dict(environment),
            close_fds=False,  # the lock of `alone` goes along: a child that outlives us holds it
        )
    except OSError as error:
        return Ended(127, f"{words[0]}: {error.strerror or error}")
    with child:
        assert child.stdout is not None
        try:
            for line in child.stdout:
                lines.append(line)
                del lines[:-KEPT_LINES]
                if on_line is not None:
                    on_line(line.rstrip())
        except BaseException:
            child.terminate()
            raise
    return Ended(child.returncode, "".join(lines))
