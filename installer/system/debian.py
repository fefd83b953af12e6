"""System packages on Debian and its relatives: installed where that is allowed, else named.

Allowed means root, or sudo that asks no password. Nobody is ever asked for a password here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from installer.problems import NETWORK, SetupProblem
from installer.report import Report
from installer.system.children import run


@dataclass(frozen=True, slots=True)
class Rights:
    """How apt may be called: the words before it, or None when it may not."""

    prefix: tuple[str, ...] | None
    why: str


def rights() -> Rights:
    """What this user may do on this system."""
    if shutil.which("apt-get") is None:
        return Rights(None, "this system has no apt-get")
    if os.geteuid() == 0:
        return Rights((), "root")
    if shutil.which("sudo") is None:
        return Rights(None, "only an administrator can install them")
    if run(["sudo", "-n", "true"]).code != 0:
        return Rights(None, "sudo asks for a password or refuses")
    return Rights(("sudo", "-n"), "sudo")


def install(packages: Sequence[str], purpose: str, report: Report) -> None:
    """Install ``packages``, of which ``purpose`` says in a few words what for.

    Raises:
        SetupProblem: it is not allowed (the sentence has the command), or apt could not.
    """
    names = " ".join(packages)
    allowed = rights()
    if allowed.prefix is None:
        raise SetupProblem(
            f"{purpose} needs system packages, and {allowed.why}; install them with "
            f"`sudo apt-get install {names}`, then start the same command again."
        )
    apt = (*allowed.prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get")
    order = (*apt, "install", "-y", "--no-install-recommends", *packages)
    report.say(f"  installing system packages for {purpose}: {names}")
    ended = run(order, report.detail)
    if ended.code != 0:
        run((*apt, "update"), report.detail)
        ended = run(order, report.detail)
    if ended.code == 0:
        return
    if NETWORK.search(ended.output):
        raise SetupProblem(
            f"{purpose} needs system packages ({names}) and apt could not reach its sources; "
            "check the network and start the same command again."
        )
    reasons = [line for line in ended.output.splitlines() if line.startswith("E:")]
    raise SetupProblem(
        f"{purpose} needs system packages and apt-get could not install {names}: "
        f"{reasons[-1] if reasons else 'no reason given'}"
    )
