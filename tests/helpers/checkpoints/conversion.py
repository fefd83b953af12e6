"""Other formats of a published checkpoint, written by those formats' own converters.

Each converter runs in a process of its own, over all orders at once: most of its time is imports.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.helpers.models import converter_path

HERE = Path(__file__).resolve().parent
LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class ToGguf:
    """``folder`` becomes the file ``out``.

    Attributes:
        kind: f32, f16 or q8_0; rows that no quant block fits stay f16 in the last.
    """

    folder: str
    out: str
    kind: str = "f32"


@dataclass(frozen=True, slots=True)
class ToMlx:
    """``folder`` becomes the folder ``out``, which must not be there yet.

    Attributes:
        bits: 2 to 8; None leaves the numbers as they are.
        group: elements that share a scale; rows that no group fits stay as they are.
        recipe: a mix of mlx-lm's, such as mixed_3_6, in place of ``bits``.
        back: ``folder`` is a quantized one, and its numbers are decoded.
    """

    folder: str
    out: str
    bits: int | None = None
    group: int = 32
    recipe: str | None = None
    back: bool = False


def to_gguf(orders: Sequence[ToGguf]) -> None:
    """Convert with llama.cpp's converter."""
    _run("gguf_child.py", [str(converter_path())], orders)


def to_mlx(orders: Sequence[ToMlx]) -> None:
    """Convert with mlx-lm's converter, on the CPU."""
    _run("mlx_child.py", [], orders)


def convert(gguf: Sequence[ToGguf], mlx: Sequence[ToMlx]) -> None:
    """Both at once."""
    with ThreadPoolExecutor(1) as beside:
        other = beside.submit(to_mlx, mlx)
        to_gguf(gguf)
        other.result()


def _run(child: str, arguments: Sequence[str], orders: Sequence[ToGguf] | Sequence[ToMlx]) -> None:
    ended = subprocess.run(
        [sys.executable, str(HERE / child), *arguments],
        input=json.dumps([asdict(order) for order in orders]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
