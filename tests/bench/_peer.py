"""llama.cpp beside us: its bench for speed, its perplexity tool for quality.

The quality tool judges a model by logits that another run saved. Here we save our own float32
reference in its file format, so that both are judged by the very same numbers: a header (magic,
context, vocabulary, chunks, all as int32), the tokens, then for each row of the context's second
half but the last: the step and least log-probability as float32, and every log-probability as
uint16 steps above the least. What lies more than 16 nats below a row's largest is cut there.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import torch

LIMIT_S = 900.0
TRIES = 20
CUT_NATS = 16.0
STEPS = 65535


@dataclass(frozen=True, slots=True)
class Speed:
    """One round of one side, tokens a second; ``decode`` by depth, one figure or several."""

    prefill: float
    decode: dict[int, list[float]]


@dataclass(frozen=True, slots=True)
class Bench:
    """llama-bench for one model; its own warm-up comes before each figure.

    ``options`` are given to it besides.
    """

    program: Path
    model: Path
    threads: int
    options: tuple[str, ...] = ()

    def prefill(self, tokens: int) -> float:
        """Tokens a second of a prompt."""
        (figure,) = self._figures(1, "-p", str(tokens), "-n", "0")
        return figure

    def decode(self, tokens: int, depth: int, repeats: int = 1) -> list[float]:
        """Tokens a second of ``tokens`` generated after ``depth`` others, read once."""
        return self._figures(repeats, "-p", "0", "-n", str(tokens), "-d", str(depth))

    def prefills(self, counts: Sequence[int], repeats: int) -> list[list[float]]:
        """Tokens a second of prompts of several lengths, in one process."""
        return self._tests(repeats, "-p", ",".join(map(str, counts)), "-n", "0")

    def decodes(self, tokens: int, depths: Sequence[int], repeats: int) -> list[list[float]]:
        """Tokens a second generated at several depths, in one process."""
        asked = ("-p", "0", "-n", str(tokens), "-d", ",".join(map(str, depths)))
        return self._tests(repeats, *asked)

    def _figures(self, repeats: int, *what: str) -> list[float]:
        (figures,) = self._tests(repeats, *what)
        return figures

    def _tests(self, repeats: int, *what: str) -> list[list[float]]:
        common = ("-m", str(self.model), "-t", str(self.threads), "-r", str(repeats), "-o", "json")
        ended = subprocess.run(
            [str(self.program), *common, *self.options, *what],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=True,
        )
        tests = json.loads(ended.stdout)
        return [[float(figure) for figure in test["samples_ts"]] for test in tests]


@dataclass(frozen=True, slots=True)
class Divergence:
    """What llama-perplexity says of a model against saved logits."""

    mean: float
    error: float
    largest: float
    top_percent: float


def run_divergence(program: Path, model: Path, base: Path, tokens: int, threads: int) -> Divergence:
    """Judge ``model`` by the logits in ``base``."""
    size = str(tokens)
    asked = ("-c", size, "-b", size, "--kl-divergence", "--kl-divergence-base", str(base))
    order = [str(program), "-m", str(model), "-t", str(threads), *asked]
    return read_divergence(whole_report(order, "Same top p:"))


def whole_report(order: Sequence[str], ending: str) -> str:
    """What a tool of llama.cpp prints, up to ``ending`` at least.

    Its last lines come from a thread that the program, when it ends, does not always wait for.
    """
    for _ in range(TRIES):
        ended = subprocess.run(
            order,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        if ending in ended.stdout:
            break
    return ended.stdout


def read_divergence(text: str) -> Divergence:
    """The figures out of llama-perplexity's report."""
    mean, error = _numbers(r"Mean\s+KLD:\s+(\S+) ±\s+(\S+)", text)
    (largest,) = _numbers(r"Maximum KLD:\s+(\S+)", text)
    (top,) = _numbers(r"Same top p:\s+(\S+) ±", text)
    return Divergence(mean, error, largest, top)


def _numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"llama-perplexity did not print {pattern!r}:\n{text[-2000:]}")
    return [float(number) for number in found.groups()]


class SavedLogits:
    """Writes a reference's logits as llama-perplexity reads them; a context manager.

    Rows come in order; those of the first half, and the last, are left out as the tool does.
    """

    def __init__(self, path: Path, ids: Sequence[int], vocabulary: int) -> None:
        self.first, self.last = len(ids) // 2, len(ids) - 1
        self._vocabulary = vocabulary
        self._row = 0
        self._file = path.open("wb")
        header = np.array([len(ids), vocabulary, 1], "<i4").tobytes()
        self._file.write(b"_logits_" + header + np.asarray(ids, "<i4").tobytes())

    def add(self, logits: torch.Tensor) -> None:
        """The next rows, [row, vocabulary] float32."""
        for row in logits:
            if self.first <= self._row < self.last:
                self._file.write(packed_row(row.numpy()))
            self._row += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def packed_row(logits: np.ndarray[tuple[int], np.dtype[np.float32]]) -> bytes:
    """One row of the file; an odd vocabulary is filled up to even."""
    wide = logits.astype(np.float64)
    largest = wide.max()
    least = max(wide.min(), largest - CUT_NATS)
    step = (largest - least) / STEPS
    norm = largest + np.log(np.exp(wide - largest).sum())
    head = np.array([step, least - norm], "<f4").tobytes()
    codes = np.rint(np.maximum(wide - least, 0.0) / (step or 1.0)).astype("<u2")
    packed: bytes = head + codes.tobytes() + bytes(2 * (len(codes) % 2))
    return packed
