"""All checks of the repository, in the environment: models for the tests, linters, types, tests.

Run by `bootstrap.py test`. Every check runs even when an earlier one failed; pytest comes last, so
that its closing line is the last one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from installer import models, start
from installer.ending import end_well
from installer.fetching.converter import provide_converter
from installer.places import Places, places
from installer.report import Report

LINTED = ("app", "engine", "kernels", "installer", "tests")


def main(arguments: Sequence[str]) -> int:
    """Run everything; ``arguments`` go to pytest. Returns 0 only when all checks passed."""
    report = Report()
    return end_well(lambda: check(arguments, places(), report), report)


def check(arguments: Sequence[str], where: Places, report: Report) -> int:
    """Provide what the tests need, run every check, then pytest."""
    provide(where, report)
    failed = [name for name, order in checks(where) if not passes(name, order, where.root, report)]
    if failed:
        report.say(f"failed before the tests: {', '.join(failed)}")
    sys.stderr.flush()
    tests = subprocess.run([where.python, "-m", "pytest", *arguments], cwd=where.root, check=False)
    return 1 if failed else tests.returncode


def provide(where: Places, report: Report) -> None:
    """The two small models, llama.cpp's converter, and Qt's system libraries for the windows."""
    models.provide(models.STARTER, where.test_models, where, report)
    models.provide(models.TEST_GEMMA, where.test_models, where, report)
    provide_converter(where.test_models, where, report)
    start.provide_qt(where, report)


def checks(where: Places) -> tuple[tuple[str, tuple[str | Path, ...]], ...]:
    """Name and command of each check that comes before the tests."""
    return (
        ("ruff", (where.python, "-m", "ruff", "check", *LINTED)),
        ("mypy --strict", (where.python, "-m", "mypy", *LINTED)),
        ("import contracts", (where.scripts / "lint-imports", "--no-cache")),
    )


def passes(name: str, order: Sequence[str | Path], root: Path, report: Report) -> bool:
    """Run one check with its output shown; True when it found nothing."""
    report.say(f"--- {name}")
    return subprocess.run(order, cwd=root, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
