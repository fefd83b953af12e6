"""The one error of set-up, and what of pip's output a person is told: news and problems."""

from __future__ import annotations

import re
from pathlib import PurePath

NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|name resolution|Name or service not known|"
    r"Network is unreachable|No route to host|ProxyError|ConnectTimeoutError|ReadTimeoutError|"
    r"Connection refused|Connection reset|Connection aborted|getaddrinfo failed|Read timed out|"
    r"IncompleteRead|Could not resolve|Temporary failure resolving|SSLError|"
    r"CERTIFICATE_VERIFY_FAILED"
)
SPACE = re.compile(r"No space left on device|Errno 28|not enough space on the disk|ENOSPC")
HASH = re.compile(r"DO NOT MATCH THE HASHES|Hashes are required|HashMismatch")
BLAMED = re.compile(r"^\s+([A-Za-z0-9._-]+==\S+)(?: from \S+)?[:\s]", re.MULTILINE)
NOT_FOUND = re.compile(r"No matching distribution found for (\S+)|Cannot install (\S+) because")
NEWS = re.compile(r"^\s*(Collecting|Downloading|Processing|Installing) ((?:(?! \(from ).)*)")
REFUSED = re.compile(r"Permission denied|Errno 13|Read-only file system|Errno 30")


class SetupProblem(Exception):
    """Set-up cannot go on; ``sentence`` says why and what helps, ``exit_code`` how to end."""

    def __init__(self, sentence: str, exit_code: int = 1) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.exit_code = exit_code


def pip_news(line: str) -> str | None:
    """What a line of pip says about its progress, in short; None for a line without news."""
    found = NEWS.match(line)
    if found is None:
        return None
    verb, subject = found.groups()
    if verb == "Installing":
        return "laying out the files"
    return f"{verb.lower()} {PurePath(subject).name}"


def not_found(output: str) -> bool:
    """Whether pip looked and found no file that fits; with a constraint set it says "conflict"."""
    return NOT_FOUND.search(output) is not None


def pip_problem(output: str, subject: str) -> SetupProblem:
    """Say in one sentence why pip could not bring ``subject``; ``output`` is what it printed."""
    if HASH.search(output):
        blamed = BLAMED.search(output)
        name = blamed.group(1) if blamed else subject
        return SetupProblem(
            f"The file that came for {name} is not one that Hearth's lock accepts (its SHA-256 "
            "differs), so nothing of it was installed; try again from another network or source."
        )
    if SPACE.search(output):
        return SetupProblem(f"The disk is full: there was no space left for {subject}.")
    if NETWORK.search(output):
        return SetupProblem(
            f"The network could not be used to fetch {subject}; check the connection or proxy and "
            "start the same command again (what is already there is kept)."
        )
    missing = NOT_FOUND.search(output)
    if missing:
        return SetupProblem(
            f"No source of pip has {missing[1] or missing[2]} for this Python and system; "
            "check pip's configuration and start the same command again."
        )
    if REFUSED.search(output):
        return SetupProblem(f"The system refused to write {subject}; check who owns the folder.")
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["no output"]
    return SetupProblem(f"pip could not install {subject}: {errors[-1].strip()[:300]}")
