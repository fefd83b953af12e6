"""The one command of a fresh checkout: `python3 installer/bootstrap.py run` or `... test`.

This file needs nothing but a Python 3, old ones included, so that a wrong Python is told in a
sentence instead of a traceback. Everything else is in the modules beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path

NEEDED = (3, 11)


def main() -> int:
    """Check the Python, then hand over to ``installer.commands``; returns the exit code."""
    if sys.version_info < NEEDED:
        found = "%d.%d.%d" % sys.version_info[:3]
        sys.stderr.write("hearth: Python 3.11 or newer is needed, found %s.\n" % found)
        return 1
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from installer.commands import main as command

    return command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
