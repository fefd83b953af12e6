"""The ``hearth`` command as a child process whose engine is the fake one.

``hearth(script, *arguments)`` runs it to its end; ``started_hearth`` lets it run. The child is this
module: its first argument is the script, the rest are hearth's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.cli.main import main
from tests.helpers.fake_engine import Script, fake_command

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ended:
    """How the command ended."""

    code: int
    out: bytes
    err: str


def hearth(script: Script, *arguments: str | os.PathLike[str] | bytes, stdin: bytes = b"") -> Ended:
    """Run the command to its end."""
    ended = subprocess.run(
        command(script, *arguments),
        input=stdin,
        capture_output=True,
        check=False,
        cwd=ROOT,
        timeout=60,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr.decode())


def started_hearth(
    script: Script, *arguments: str | os.PathLike[str] | bytes
) -> subprocess.Popen[bytes]:
    """Start the command with pipes."""
    return subprocess.Popen(
        command(script, *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )


def command(
    script: Script, *arguments: str | os.PathLike[str] | bytes
) -> list[str | os.PathLike[str] | bytes]:
    """The child's command line."""
    text = msgspec.json.encode(script).decode()
    return [sys.executable, "-m", "tests.helpers.hearth", text, *arguments]


if __name__ == "__main__":
    given = msgspec.json.decode(sys.argv[1], type=Script)
    sys.exit(main(sys.argv[2:], make_command=lambda _folder: fake_command(given)))
