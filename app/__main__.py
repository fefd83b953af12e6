"""The program: ``python -m app`` is ``hearth``."""

from __future__ import annotations

import sys

from app.cli.main import main


def run() -> int:
    """Run ``hearth`` with the arguments of this process."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
