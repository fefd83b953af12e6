"""``python -O -m tests.helpers.gpu_compile_child 9.0 3 [norm.]``: compiles launches for one GPU.

Records every launch of the checks and benches, compiles for each kernel as many different ones as
asked, and writes a line of JSON for each: what its code is like, or what went wrong.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from triton.runtime.jit import JITFunction

from tests.helpers.gpu_compile import HOME, Launch, compiled
from tests.helpers.gpu_launches import recorded

LARGEST_TILE = 1 << 16
KERNELS = Path(__file__).resolve().parents[2] / "kernels"


def main() -> int:
    """Compile and tell."""
    major, minor = (int(part) for part in sys.argv[1].split("."))
    launches, problems = recorded((major, minor), benches=(major, minor) == HOME)
    by_kernel: dict[str, list[Launch]] = defaultdict(list)
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    for launch in launches:
        if not launch.name.startswith(only) or not launch.kernel.module.startswith("kernels."):
            continue
        by_kernel[launch.name].append(launch)
    for problem in problems:
        say(problem=problem)
    missing = launched_kernels() - set(by_kernel) if (major, minor) == HOME and not only else set()
    for name in sorted(missing):
        say(problem=f"{name} is launched by no check and no bench")
    for name in sorted(by_kernel):
        for launch in most_different(by_kernel[name], int(sys.argv[2])):
            tell(launch, (major, minor))
    return 0


def tell(launch: Launch, capability: tuple[int, int]) -> None:
    """Compile one launch."""
    how, began = sorted(launch.traits), time.perf_counter()
    try:
        machine = asdict(compiled(launch, capability))
    except Exception as error:  # noqa: BLE001 - what the compiler says is the result
        say(kernel=launch.name, how=how, problem=innermost(error))
    else:
        del machine["ptx"]
        seconds = round(time.perf_counter() - began, 1)
        say(kernel=launch.name, how=how, seconds=seconds, **machine)


def most_different(launches: Sequence[Launch], count: int) -> list[Launch]:
    """Largest first, then always the one with most traits that none before it had."""
    left = sorted(launches, key=size, reverse=True)
    chosen: list[Launch] = []
    seen: set[str] = set()
    while left and len(chosen) < count:
        chosen.append(max(left, key=lambda each: len(each.traits - seen)) if seen else left[0])
        seen |= chosen[-1].traits
        left.remove(chosen[-1])
    return chosen


def size(launch: Launch) -> int:
    """How large a launch's tiles and loops are, roughly."""
    numbers = [each for each in launch.constexprs.values() if isinstance(each, int)]
    return sum(each for each in numbers if 0 < each < LARGEST_TILE)


def launched_kernels() -> set[str]:
    """Kernels that some ``launch.py`` knows by name."""
    found: set[str] = set()
    for path in KERNELS.glob("*/launch*.py"):
        module = importlib.import_module(f"kernels.{path.parent.name}.{path.stem}")
        found |= {
            Launch(each, {}, {}, {}, {}).name
            for each in vars(module).values()
            if isinstance(each, JITFunction)
        }
    return found


def innermost(error: BaseException) -> str:
    """The cause of the cause, down to what a line of the kernel itself did wrong."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {str(error)[-600:]}"


def say(**words: Any) -> None:
    """A line of its own to whoever asked, whatever the compiler printed before."""
    print(f"\n{json.dumps(words)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
