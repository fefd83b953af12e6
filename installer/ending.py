"""How every part of set-up ends when it does not end well: one sentence and an exit code."""

from __future__ import annotations

from collections.abc import Callable

from installer.problems import SetupProblem
from installer.report import Report

EXIT_INTERRUPTED = 130


def end_well(work: Callable[[], int], report: Report) -> int:
    """Do ``work`` and return its exit code, or tell what stopped it and return that one's."""
    try:
        return work()
    except SetupProblem as problem:
        report.say(f"hearth: {problem.sentence}")
        return problem.exit_code
    except KeyboardInterrupt:
        report.say("hearth: interrupted; start the same command again to go on.")
        return EXIT_INTERRUPTED
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        report.say(f"hearth: the system refused: {error.strerror or error}{place}.")
        return 1
