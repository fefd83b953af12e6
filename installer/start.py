"""Opens Hearth in the environment: starter model, what Qt needs, the display, then the app.

Run by `bootstrap.py run` in the environment's Python. When everything is there it only looks, and
the app starts in this same process.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.directories import directories
from installer import environment, models, stamp
from installer.places import Places, places
from installer.problems import SetupProblem
from installer.report import Report
from installer.system import qt_libraries

EXIT_NO_DISPLAY = 2
COMMANDS = frozenset(
    {"ask", "models", "doctor", "bench", "plan", "pull", "-h", "--help", "--version"}
)
SHOWN_ELSEWHERE = ("offscreen", "minimal", "vnc", "linuxfb", "eglfs")


def main(arguments: Sequence[str]) -> int:
    """Complete what a start needs, then become the app; returns only when that is not possible."""
    where, report = places(), Report()
    try:
        provide_starter(where, report, data_directory(arguments))
        if wants_window(arguments):
            provide_window(where, report)
    except SetupProblem as problem:
        report.say(f"Hearth: {problem.sentence}")
        return problem.exit_code
    sys.argv = ["hearth", *arguments]
    runpy.run_module("app", run_name="__main__", alter_sys=False)
    return 0


def data_directory(arguments: Sequence[str]) -> Path | None:
    """The data directory that ``arguments`` name for the app, or None for the usual one."""
    for position, word in enumerate(arguments):
        if word.startswith("--data-directory="):
            return Path(word.split("=", 1)[1])
        if word == "--data-directory" and position + 1 < len(arguments):
            return Path(arguments[position + 1])
    return None


def provide_starter(where: Places, report: Report, data: Path | None) -> None:
    """Fetch the starter model where there is no checkpoint at all, so that there is an answer."""
    folder = directories(data).models
    if not any(folder.glob("*.gguf")):
        models.provide(models.STARTER, folder, where, report, copies=where.test_models)


def wants_window(arguments: Sequence[str]) -> bool:
    """Whether these arguments open a window instead of running a command."""
    return not COMMANDS.intersection(arguments)


def provide_window(where: Places, report: Report) -> None:
    """See that Qt's libraries and a display are there.

    Raises:
        SetupProblem: a library is missing and may not be installed, or there is no display.
    """
    made = stamp.read(where.stamp)
    if sys.platform == "linux" and made is not None and not made.qt_complete:
        qt_libraries.provide(where.packages, report)
        environment.note_qt_complete(where, made)
    if no_display(os.environ, sys.platform):
        raise SetupProblem(
            "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so no window "
            f"can open; ask in the terminal instead: {where.launcher} ask 'your question'",
            EXIT_NO_DISPLAY,
        )


def no_display(variables: Mapping[str, str], platform: str) -> bool:
    """Whether Qt would find no screen to open on."""
    if platform != "linux" or variables.get("QT_QPA_PLATFORM", "").startswith(SHOWN_ELSEWHERE):
        return False
    return not (variables.get("DISPLAY") or variables.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
