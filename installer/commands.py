"""The two commands of set-up, `run` and `test`, for the system's own Python."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from installer import environment
from installer.ending import end_well
from installer.places import places
from installer.report import Report
from installer.system.alone import alone


def main(arguments: Sequence[str]) -> int:
    """Prepare the environment, then hand over to it; returns the exit code."""
    wish, passed_on = parse(arguments)
    report = Report()
    return end_well(lambda: set_up(wish, passed_on, report), report)


def set_up(wish: argparse.Namespace, passed_on: Sequence[str], report: Report) -> int:
    """Prepare the environment unless it is ready, and hand over to it."""
    where, tests = places(), wish.command == "test"
    if not environment.is_ready(where, tests=tests, backend=wish.torch):
        with alone(where.root, report):
            environment.prepare(where, report, tests=tests, backend=wish.torch)
    module = "installer.checks" if tests else "installer.start"
    return hand_over([str(where.python), "-P", "-m", module, *passed_on])


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our own arguments, and those after `--` that belong to the app or to pytest."""
    own, passed_on = list(arguments), list[str]()
    if "--" in own:
        cut = own.index("--")
        own, passed_on = own[:cut], own[cut + 1 :]
    parser = argparse.ArgumentParser(
        prog="bootstrap.py", description="Sets Hearth up and opens it, or runs its tests."
    )
    parser.add_argument("command", choices=("run", "test"), help="open Hearth, or run all tests")
    parser.add_argument(
        "--torch",
        choices=("cpu", "cuda"),
        help="the build of torch; without it the GPU that is found decides, once",
    )
    parser.epilog = "Arguments after -- go to Hearth (run) or to pytest (test)."
    return parser.parse_args(own), passed_on


def hand_over(order: Sequence[str]) -> int:
    """Become ``order``; on Windows, where a process cannot become another, wait for it."""
    sys.stderr.flush()
    if sys.platform == "win32":
        return subprocess.run(order, check=False).returncode
    return os.execv(order[0], list(order))
