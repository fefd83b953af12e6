"""Each GPU kernel's check turns red when one thing of it is wrong.

A mutant is the product's own source with one piece of text replaced, in a copy; its check runs
there in Triton's interpreter. One that stays green is a hole in the check. Beside them, one that
changes nothing must stay green.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIDE_BY_SIDE = 2
LIMIT_S = 300
CAUGHT = "caught: "
JUDGE = """
import importlib, sys, torch
name = sys.argv[1]
cases = importlib.import_module(f"kernels.{name}.cases").CASES
check = importlib.import_module(f"tests.helpers.gpu.{name}").check
for case in cases:
    if getattr(case, "interpreted", True):
        try:
            check(case, torch.device("cpu"))
        except AssertionError as error:
            sys.exit(print(f"caught: {str(error)[:300]}"))
print("every case passed")
"""


@dataclass(frozen=True, slots=True)
class Mutant:
    """``old`` becomes ``new``, once, in a file of kernels/; ``check`` is the operation's name."""

    check: str
    file: str
    old: str
    new: str


MUTANTS = (
    Mutant("norm", "norm/kernel.py", "axis=0) / columns", "axis=0) / (columns + 1)"),
    Mutant("gated", "gated/kernel.py", "values < 0.0, small, 1.0", "values > 0.0, small, 1.0"),
    Mutant("rotary", "rotary/kernel.py", "first, -across, across", "first, across, -across"),
    Mutant(
        "mixture", "mixture/kernel.py", "tl.sum(tl.where(taken, likely, 0.0), axis=0)",
        "tl.sum(likely, axis=0)",
    ),
    Mutant("draw", "draw/kernel.py", "(at ^ NAN).to(tl.int64)", "at.to(tl.int64)"),
    Mutant(
        "unpack", "unpack/kernel.py", "found + added if MINIMUM > 0", "found + added if MINIMUM < 0"
    ),
    Mutant("prompt_product", "prompt_product/kernel.py", "b.T, total, input", "b.T, input"),
    Mutant(
        "expert_prompt", "expert_prompt/kernel.py",
        "weight + expert.to(tl.int64) * expert_stride", "weight",
    ),
    Mutant(
        "delta_step", "delta_step/kernel.py", "kept = tl.exp(tl.load(decay + head) * steps)",
        "kept = tl.exp(-tl.load(decay + head) * steps)",
    ),
    Mutant(
        "delta_prompt", "delta_prompt/kernel.py", "line[:, None] >= line[None, :], apart",
        "line[:, None] > line[None, :], apart",
    ),
    Mutant("step_attention", "step_attention/kernel.py", "(key <= position)", "(key < position)"),
    Mutant(
        "prompt_attention", "prompt_attention/kernel.py", "shown = key <= last[:, None]",
        "shown = key < last[:, None]",
    ),
    Mutant("step_product", "step_product/kernel.py", "* 254, second * 254", "* 255, second * 254"),
    Mutant("step_product", "inline.py", "right = (activations << (24 - 8 * byte)) >> 24",
           "right = (activations >> (8 * byte)) & 255"),
    Mutant("norm", "quantize.py", "(tl.abs(whole) + 127)", "(tl.abs(whole) + 126)"),
)  # fmt: skip
HARMLESS = Mutant("gated", "gated/kernel.py", "return wide *", "return  wide *")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[Mutant, Future[str]]:
    """What each mutant's check says."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return {
            each: pool.submit(judged, each, tmp_path_factory.mktemp("mutant"))
            for each in (HARMLESS, *MUTANTS)
        }


def judged(mutant: Mutant, folder: Path) -> str:
    for name in ("kernels", "tests/helpers/gpu"):
        leave = shutil.ignore_patterns("__pycache__", "*.so", "*.dll", "native")
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    path = folder / "kernels" / mutant.file
    text = path.read_text("utf-8")
    assert mutant.old in text, f"{mutant.file} no longer has {mutant.old!r}"
    path.write_text(text.replace(mutant.old, mutant.new), "utf-8")
    ended = subprocess.run(
        [sys.executable, "-c", JUDGE, mutant.check],
        cwd=folder, env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(folder)},
        capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout.strip()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: f"{each.check}: {each.new}")
def test_a_kernel_with_one_thing_wrong_is_caught(
    mutant: Mutant, verdicts: dict[Mutant, Future[str]]
) -> None:
    assert verdicts[mutant].result().startswith(CAUGHT), mutant


def test_a_kernel_with_nothing_wrong_is_not_caught(verdicts: dict[Mutant, Future[str]]) -> None:
    assert verdicts[HARMLESS].result() == "every case passed"


def test_every_operation_has_a_mutant() -> None:
    operations = {path.parent.name for path in (ROOT / "kernels").glob("*/kernel.py")}
    assert operations == {mutant.check for mutant in MUTANTS}
