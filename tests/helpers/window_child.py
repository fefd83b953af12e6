"""The window as a child process whose engine is the fake one; it asks one question by itself.

Run as ``python -m tests.helpers.window_child SCRIPT FOLDER``; offscreen unless told otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from app.directories import directories
from app.library.catalogue import STARTER
from app.start import open_window
from tests.helpers.fake_engine import Script, fake_command

ROOT = Path(__file__).resolve().parents[2]
QUESTION = "Count, please"


def started_window(folder: Path, script: Script) -> subprocess.Popen[str]:
    """Start the window on ``folder``; its output is piped."""
    models = folder / "models"
    models.mkdir(parents=True, exist_ok=True)
    (models / STARTER.file_name).write_bytes(b"GGUF")
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.helpers.window_child",
            msgspec.json.encode(script).decode(),
            str(folder),
        ],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def main() -> int:
    """The child's entry."""
    from app.composition import Application  # noqa: PLC0415 - Qt only in the child

    start = Application.start

    def start_and_ask(self: Application) -> None:
        start(self)
        self.workshop.chats.shown.connect(lambda session: session.send(QUESTION))

    Application.start = start_and_ask  # type: ignore[method-assign]
    script = msgspec.json.decode(sys.argv[1], type=Script)
    return open_window(directories(Path(sys.argv[2])), lambda _data: fake_command(script))


if __name__ == "__main__":
    sys.exit(main())
