"""The engine process: ``python -m engine --data-directory FOLDER``, frames on stdin and stdout.

File descriptor 1 is taken away before anything else is imported, so that no stray print of any
library can cut a frame; what is printed goes to stderr, the log.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    REQUESTS = os.fdopen(os.dup(0), "rb", buffering=0)
    REPLIES = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    _nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(_nothing, 0)
    os.close(_nothing)

import ctypes
import logging
import signal

from engine.composition import run_engine
from engine.config import parse_arguments

PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run until the app leaves; returns the exit code."""
    config = parse_arguments(sys.argv[1:])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    return run_engine(config, REQUESTS, REPLIES)


if __name__ == "__main__":
    _code = main()
    sys.stderr.flush()
    # Threads of native libraries may not hold up the end: everything of ours is closed by now.
    os._exit(_code)
