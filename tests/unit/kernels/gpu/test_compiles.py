"""Every kernel becomes code for every GPU that Hearth names, on a machine that has none.

What is compiled are the launches that checks and benches make, recorded for each GPU apart. Each
GPU is one process: kernels of this one run in the interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kernels.device import SHARED_BYTES

ROOT = Path(__file__).resolve().parents[4]
HOME = (9, 0)
"""The GPU that is compiled for most thoroughly, and how many launches of each kernel."""
HOME_LAUNCHES = 3
ONE = 1
LIMIT_S = 600
BYTE_PRODUCTS = ("step_product.",)
MATRIX_PRODUCTS = ("prompt_product.", "expert_prompt.", "prompt_attention.")


@pytest.fixture(scope="module")
def said() -> Iterator[dict[tuple[int, int], list[dict[str, Any]]]]:
    """What the compiler said, by GPU."""
    with ThreadPoolExecutor(2) as pool:
        yield dict(zip(SHARED_BYTES, pool.map(compile_for, SHARED_BYTES), strict=True))


def compile_for(capability: tuple[int, int]) -> list[dict[str, Any]]:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    count = HOME_LAUNCHES if capability == HOME else ONE
    ended = subprocess.run(
        [
            sys.executable, "-O", "-m", "tests.helpers.gpu_compile_child",
            "{}.{}".format(*capability), str(count),
        ],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]


def test_every_launch_is_recorded_and_compiles(
    said: dict[tuple[int, int], list[dict[str, Any]]],
) -> None:
    problems = [
        f"{capability}: {line.get('kernel', '')} {line.get('how', '')} {line['problem']}"
        for capability, lines in said.items()
        for line in lines
        if "problem" in line
    ]
    assert problems == []


def test_no_program_needs_more_shared_memory_than_its_gpu_has(
    said: dict[tuple[int, int], list[dict[str, Any]]],
) -> None:
    over = [
        f"{capability}: {line['kernel']} {line['how']} wants {line['shared_bytes']:,} bytes"
        for capability, lines in said.items()
        for line in lines
        if line.get("shared_bytes", 0) > SHARED_BYTES[capability]
    ]
    assert over == []


def test_products_use_the_instructions_that_were_made_for_them(
    said: dict[tuple[int, int], list[dict[str, Any]]],
) -> None:
    for capability, lines in said.items():
        code = [line for line in lines if "registers" in line]
        for line in code:
            if line["kernel"].startswith(MATRIX_PRODUCTS) and not reads_float32(line):
                assert line["matrix"], (capability, line)
        steps = [line for line in code if line["kernel"].startswith(BYTE_PRODUCTS)]
        assert not steps or any(line["dp4a"] for line in steps), capability


def reads_float32(line: dict[str, Any]) -> bool:
    """The router's product, which is small and exact."""
    return "x=*fp32" in line["how"]
