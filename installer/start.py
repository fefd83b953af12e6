"""Opens Hearth in the environment: the starter model, what Qt needs, then the app itself.

Run by `bootstrap.py run` in the environment's Python. When everything is there it only looks, and
the app starts in this same process. Whether there is a display is the app's to say.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from app.cli.options import WindowOptions, parse
from app.desktop.display import has_display
from app.directories import Directories, directories, make_private
from app.errors import AppError
from installer import environment, models, stamp
from installer.ending import end_well
from installer.places import Places, places
from installer.problems import SetupProblem
from installer.report import Report
from installer.system import qt_libraries
from installer.system.alone import alone


def main(arguments: Sequence[str]) -> int:
    """Complete what a start needs, then become the app; returns only when that is not possible."""
    report = Report()
    code = end_well(lambda: provide(arguments, places(), report), report)
    if code != 0:
        return code
    sys.argv = ["hearth", *arguments]
    runpy.run_module("app", run_name="__main__")
    return 0


def provide(arguments: Sequence[str], where: Places, report: Report) -> int:
    """Bring what the app needs for these arguments and the lock does not have; returns 0.

    Raises:
        SetupProblem: the arguments make no sense, the starter model cannot be fetched, or a
            library may not be installed.
    """
    try:
        options = parse(arguments)
        provide_starter(directories(options.data_directory), where, report)
    except AppError as error:
        raise SetupProblem(error.sentence, error.exit_code) from error
    if isinstance(options, WindowOptions) and has_display(os.environ):
        provide_qt(where, report)
    return 0


def provide_starter(folders: Directories, where: Places, report: Report) -> None:
    """Fetch the starter model where there is no checkpoint at all, so that there is an answer."""
    if any(folders.models.glob("*.gguf")):
        return
    make_private(folders.data)
    with alone(where.root, report):
        models.provide(models.STARTER, folders.models, where, report)


def provide_qt(where: Places, report: Report) -> None:
    """See once that Qt finds its system libraries; the stamp remembers that it did."""
    made = stamp.read(where.stamp)
    if sys.platform == "linux" and made is not None and not made.qt_complete:
        qt_libraries.provide(where.packages, report)
        environment.note_qt_complete(where, made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
