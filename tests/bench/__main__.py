"""`python -m tests.bench NAME [ARGS]` runs the benchmark `tests/bench/NAME.py`.

One that takes several files is a folder with a `command.py`.

A benchmark is a module of this folder with ``main(arguments) -> int``. It runs its gate first,
prints a table, and ends with one line of JSON: commit, processor, torch, median and spread.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def names() -> list[str]:
    """The benchmarks there are."""
    files = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")}
    return sorted(files | {path.parent.name for path in FOLDER.glob("*/command.py")})


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that the first argument names; 2 when there is none of that name."""
    if not arguments or arguments[0] not in names():
        asked = f"no benchmark {arguments[0]!r}; " if arguments else ""
        sys.stderr.write(f"{asked}python -m tests.bench NAME, one of: {', '.join(names())}\n")
        return 2
    folder = (FOLDER / arguments[0]).is_dir()
    module = importlib.import_module(f"tests.bench.{arguments[0]}{'.command' * folder}")
    result: int = module.main(arguments[1:])
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
