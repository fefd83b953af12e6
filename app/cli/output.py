"""What the command line writes: the reply's bytes to stdout, everything else to stderr.

A closed stdout is ``OutputClosed``; the command then ends without a word. Only a terminal gets
control characters shown as U+FFFD, and a line end after the reply; a file or pipe gets the bytes.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import BinaryIO, Final

import msgspec

from app.errors import AppError

SHOWN_CONTROLS: Final = frozenset("\n\t")


class OutputClosed(Exception):
    """Whoever read stdout is gone."""


class OutputFailed(AppError):
    """What is written to stdout does not get there."""

    code = "output-failed"


class Output:
    """The two streams of a command."""

    def __init__(self, out: BinaryIO, is_terminal: bool) -> None:
        self._out = out
        self._is_terminal = is_terminal
        self._at_line_start = True

    def text(self, text: str) -> None:
        """Write a piece of the reply at once; raises OutputClosed or OutputFailed."""
        if not text:
            return
        self._at_line_start = text.endswith("\n")
        self._write(visible(text) if self._is_terminal else text)

    def end_text(self) -> None:
        """End the reply: a terminal's prompt starts on a line of its own."""
        if self._is_terminal and not self._at_line_start:
            self._write("\n")
            self._at_line_start = True

    def line(self, text: str) -> None:
        """Write one line of a report; raises OutputClosed or OutputFailed."""
        self.text(f"{text}\n")

    def json(self, record: object) -> None:
        """Write one JSON object and a line end; raises OutputClosed or OutputFailed."""
        self._write(msgspec.json.encode(record).decode() + "\n")

    def note(self, sentence: str) -> None:
        """Tell a person something, on stderr."""
        with contextlib.suppress(OSError, ValueError):
            print(f"hearth: {visible(sentence)}", file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        try:
            self._out.write(text.encode("utf-8", "replace"))
            self._out.flush()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise OutputClosed from error
        except OSError as error:
            raise OutputFailed(
                f"The reply cannot be written: {error.strerror or error}."
            ) from error


def standard_output() -> Output:
    """The process's own streams; without a stdout (Windows, no console) nothing is written."""
    if sys.stdout is None:
        return Output(io.BytesIO(), is_terminal=False)
    return Output(sys.stdout.buffer, sys.stdout.isatty())


def forget_output() -> None:
    """Point stdout to nowhere, so that Python's last flush at exit has nothing to complain of."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def visible(text: str) -> str:
    """``text`` with its control characters, escape codes among them, shown as U+FFFD."""
    if text.isprintable():
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if _is_control(character) else character for character in text
    )


def _is_control(character: str) -> bool:
    code = ord(character)
    return (code < 32 or 127 <= code < 160) and character not in SHOWN_CONTROLS
