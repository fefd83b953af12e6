"""What a child does: ``python -m tests.bench.gpu.work check|warm|time MODULE DEVICE SHARD``."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import torch

from tests.bench.gpu import card, timing
from tests.bench.gpu.child import READY, Finding

Bench = tuple[str, Callable[[], object], float, float]
FRAMES = 3


def main() -> int:
    """Do the one thing, a finding a line."""
    kind, module, device, shard = sys.argv[1:]
    number, count = (int(part) for part in shard.split("/"))
    if kind == "check":
        for case in cases(module)[number::count]:
            check(module, case, device)
    elif kind == "warm":
        for name, call, _, _ in islice(benches(module), number, None, count):
            _, error = guarded(partial(called, call))
            say(Finding("warm", module, name, error))
    else:
        torch.zeros(1, device=device)
        time_all(module, wait())
    return 0


def cases(module: str) -> list[Any]:
    """Those of one operation; none where its helper checks nothing."""
    helper = importlib.import_module(f"tests.helpers.gpu.{module}")
    if not hasattr(helper, "check"):
        return []
    if hasattr(helper, "CASES"):
        return list(helper.CASES)
    return list(importlib.import_module(f"kernels.{module}.cases").CASES)


def check(module: str, case: Any, device: str) -> None:
    """One case; in the interpreter only where it is small enough for that."""
    if device == "cpu" and not getattr(case, "interpreted", True):
        return
    helper = importlib.import_module(f"tests.helpers.gpu.{module}")
    found, error = guarded(partial(helper.check, case, torch.device(device)))
    figures = found if isinstance(found, dict) else {}
    name = str(getattr(case, "name", "")) or str(case)
    say(Finding("check", module, name, error, figures))


def called(call: Callable[[], object]) -> None:
    """Call it once and wait: it is compiled then, and the compiler's cache has it."""
    call()
    torch.cuda.synchronize()


def time_all(module: str, names: list[str]) -> None:
    """Time every bench of a module that compiled, or the card itself."""
    if module == "card":
        say(Finding("card", "", "", figures=card.measured()))
        return
    for name, call, size, flops in benches(module):
        if name not in names:
            continue
        found, error = guarded(partial(timing.timed, call))
        figures = {} if error else found | {"bytes": size, "flops": flops}
        say(Finding("time", module, name, error, figures))


def benches(module: str) -> Iterator[Bench]:
    """What the module yields; where it raises, that is told and it ends there."""
    helper = importlib.import_module(f"tests.helpers.gpu.{module}")
    found = iter(helper.benches())
    while True:
        bench, error = guarded(partial(next, found, None))
        if error:
            say(Finding("time", module, "benches()", error))
        if bench is None:
            return
        yield bench


def guarded(call: Callable[[], Any]) -> tuple[Any, str]:
    """What it returns, and what went wrong."""
    try:
        return call(), ""
    except Exception as error:  # noqa: BLE001 - whatever a kernel does is a line of the report
        where = traceback.extract_tb(error.__traceback__)[-FRAMES:]
        frames = " < ".join(f"{each.filename[-40:]}:{each.lineno}" for each in reversed(where))
        return None, f"{type(error).__name__}: {str(error)[-700:]} [{frames}]"


def wait() -> list[str]:
    """Say that it may begin; the names to time, when the other side sends them."""
    say(Finding(READY, "", ""))
    names = sys.stdin.readline()
    if not names:
        sys.exit(0)
    return [str(name) for name in json.loads(names)]


def say(finding: Finding) -> None:
    """One line to the other side."""
    print(finding.line(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
