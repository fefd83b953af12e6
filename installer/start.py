"""Opens Hearth in the environment: the starter model, what Qt needs, then the app itself.

Run by `bootstrap.py run` in the environment's Python. When everything is there it only looks, and
the app starts in this same process. Whether there is a display is the app's to say.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from app.cli.options import Options, WindowOptions, parse
from app.desktop.display import has_display
from app.directories import Directories, directories, make_private
from app.errors import AppError
from installer import environment, models, stamp
from installer.alone import alone
from installer.places import Places, places
from installer.problems import SetupProblem
from installer.report import Report
from installer.system import qt_libraries


def main(arguments: Sequence[str]) -> int:
    """Complete what a start needs, then become the app; returns only when that is not possible."""
    where, report = places(), Report()
    try:
        provide(parse(arguments), where, report)
    except AppError as error:
        report.say(f"hearth: {error.sentence}")
        return error.exit_code
    except SetupProblem as problem:
        report.say(f"hearth: {problem.sentence}")
        return problem.exit_code
    sys.argv = ["hearth", *arguments]
    runpy.run_module("app", run_name="__main__")
    return 0


def provide(options: Options, where: Places, report: Report) -> None:
    """Bring what these options need and an installation from the lock does not have.

    Raises:
        SetupProblem: the starter model cannot be fetched, or a library may not be installed.
    """
    provide_starter(directories(options.data_directory), where, report)
    if isinstance(options, WindowOptions) and has_display(os.environ):
        provide_qt(where, report)


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
