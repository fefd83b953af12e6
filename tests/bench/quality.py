"""How far logits are from the dequantized float32 reference, on 2,000 tokens of English.

    python -m tests.bench quality [--model FILE]... [--peer-kld llama-perplexity]

Teacher-forced: every side reads the same ids (tests/data/english.txt). The native runner is judged
twice, by its prompt rows and by its step rows; each source of error is judged alone by swapping
that one part of the reference. llama.cpp is judged by the very same reference logits, on the rows
that its tool looks at, the second half; those rows' mean is printed for every side. Ends with 1
where a native mean is above 1e-3 nats, a relative L2 above 1.5e-2, or the peer's mean is lower.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from engine.cache.formats import PAGE_ROWS, KvFormat
from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import CheckpointSource
from engine.forward import DequantizedProducts, Products, Weights
from engine.models import model_spec
from engine.models.spec import Linear
from engine.text.tokenizer import Tokenizer
from kernels.cpu import cases, reference
from tests.bench._facts import ROOT, add_common, machine, print_json
from tests.bench._peer import Divergence, SavedLogits, run_divergence
from tests.helpers.models import gemma_path, smol_path
from tests.helpers.native_model import Both, NativeSide, TorchSide, steps

TEXT = ROOT / "tests" / "data" / "english.txt"
LARGEST_MEAN_NATS = 1e-3
LARGEST_RELATIVE_L2 = 1.5e-2
SLICE_ROWS = 16

PROMPT_ROWS = "native, prompt rows"
STEP_ROWS = "native, step rows"
FP16_PAGES = "only fp16 pages"
FP8_PAGES = "only fp8 pages"
INT16_INPUTS = "only int16 activations"
BOTH_PARTS = "fp16 pages and int16 activations"
Logits = Callable[[list[int], int], torch.Tensor]


@dataclass
class Distance:
    """What is gathered of one side against the reference, row by row."""

    nats: list[float] = field(default_factory=list)
    relative: list[float] = field(default_factory=list)
    tops: int = 0
    squares: float = 0.0
    wanted_squares: float = 0.0

    def add(self, found: torch.Tensor, wanted: torch.Tensor) -> None:
        """The next rows, [row, vocabulary]."""
        for first in range(0, len(found), SLICE_ROWS):
            a, b = found[first : first + SLICE_ROWS], wanted[first : first + SLICE_ROWS]
            p, q = b.double().log_softmax(-1), a.double().log_softmax(-1)
            self.nats += (p.exp() * (p - q)).sum(-1).tolist()
            apart = (a.double() - b.double()).square().sum(-1)
            size = b.double().square().sum(-1)
            self.relative += (apart / size).sqrt().tolist()
            self.squares += float(apart.sum())
            self.wanted_squares += float(size.sum())
        self.tops += int((found.argmax(-1) == wanted.argmax(-1)).sum())

    def figures(self, first: int, last: int) -> dict[str, float]:
        """Over all rows; ``half_mean_nats`` over [first, last), those of llama-perplexity."""
        half = self.nats[first:last]
        return {
            "mean_nats": sum(self.nats) / len(self.nats),
            "largest_nats": max(self.nats),
            "half_mean_nats": sum(half) / len(half),
            "relative_l2": (self.squares / self.wanted_squares) ** 0.5,
            "worst_relative_l2": max(self.relative),
            "top_percent": 100 * self.tops / len(self.nats),
        }


class CodedProducts:
    """The reference's products of inputs rounded to int16 codes, as a native step rounds them."""

    def __init__(self, source: CheckpointSource, exact: Products) -> None:
        self._formats = {name: facts.format for name, facts in source.tensors.items()}
        self._exact = exact
        self._seen = self._rounded = torch.empty(0)

    def multiply(self, x: torch.Tensor, linear: Linear) -> torch.Tensor:
        """See ``engine.forward.Products``."""
        if self._formats[linear.weight] in cases.VALUE_FORMATS:
            return self._exact.multiply(x, linear)
        if x is not self._seen:
            self._seen, self._rounded = x, reference.prepared(x.contiguous()).values().float()
        return self._exact.multiply(self._rounded, linear)

    def close(self) -> None:
        """The weights are the other products'."""


def main(arguments: Sequence[str]) -> int:
    """Judge each model; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench quality")
    parser.add_argument("--model", type=Path, action="append", help="may be repeated")
    parser.add_argument("--peer-kld", type=Path, help="llama-perplexity")
    parser.add_argument("--tokens", type=int, default=2000)
    add_common(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    found, good = {}, True
    for path in options.model or [smol_path(), gemma_path()]:
        figures = _judged(path, options)
        found[path.name] = figures
        good = _table(path.name, figures) and good
    record = {"bench": "quality", "tokens": options.tokens, "models": found}
    print_json(record | machine(options.threads, options.isa))
    return 0 if good else 1


def english_ids(source: CheckpointSource, count: int) -> list[int]:
    """The text's first ids, after BOS where the model wants one."""
    tokenizer = Tokenizer(source.tokenizer)
    begin = [tokenizer.bos_id] if tokenizer.add_bos and tokenizer.bos_id is not None else []
    ids = begin + tokenizer.encode(TEXT.read_text("utf-8"), special=False)
    assert len(ids) >= count, f"the text has only {len(ids)} tokens"
    return ids[:count]


def _judged(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    with ExitStack() as stack:
        source = stack.enter_context(open_checkpoint(path))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ids = english_ids(source, options.tokens)
        vocabulary = model_spec(source).vocabulary
        saved = SavedLogits(folder / "logits", ids, vocabulary)
        with saved:
            distances = _distances(source, ids, options, saved, stack)
        figures: dict[str, Any] = {
            name: distance.figures(saved.first, saved.last) for name, distance in distances.items()
        }
        if options.peer_kld:
            figures["llama.cpp"] = run_divergence(
                options.peer_kld, path, folder / "logits", len(ids), options.threads
            )
    return figures


def _distances(
    source: CheckpointSource,
    ids: list[int],
    options: argparse.Namespace,
    saved: SavedLogits,
    stack: ExitStack,
) -> dict[str, Distance]:
    """Every side beside the reference, chunk by chunk, so that one chunk's logits are held."""
    exact = DequantizedProducts(model_spec(source), Weights(source))
    coded = CodedProducts(source, exact)
    rows = len(ids)

    def reading(kv_format: KvFormat, products: Products) -> Logits:
        side = TorchSide(source, rows, kv_format, products)
        stack.callback(side.close)
        return stack.enter_context(_prompt_rows(side))

    native = NativeSide(source, rows, threads=options.threads, isa=options.isa)
    stack.enter_context(native)
    wanted = reading(KvFormat.FP32, exact)
    sides = {
        PROMPT_ROWS: stack.enter_context(_prompt_rows(native)),
        STEP_ROWS: stack.enter_context(_step_rows(native)),
        FP16_PAGES: reading(KvFormat.FP16, exact),
        FP8_PAGES: reading(KvFormat.FP8, exact),
        INT16_INPUTS: reading(KvFormat.FP32, coded),
        BOTH_PARTS: reading(KvFormat.FP16, coded),
    }
    found = {name: Distance() for name in sides}
    for first in range(0, rows, PAGE_ROWS):
        part = ids[first : first + PAGE_ROWS]
        logits = wanted(part, first)
        saved.add(logits)
        for name, side in sides.items():
            found[name].add(side(part, first), logits)
    return found


@contextmanager
def _prompt_rows(side: Both) -> Iterator[Logits]:
    with side.lane() as lane:

        def read(part: list[int], first: int) -> torch.Tensor:
            lane.extend(len(part))
            return side.runner.all_logits(lane, part, first)

        yield read


@contextmanager
def _step_rows(side: NativeSide) -> Iterator[Logits]:
    with side.lane() as lane:
        yield lambda part, _: steps(side, lane, part)


def _table(name: str, figures: dict[str, Any]) -> bool:
    peer: Divergence | None = figures.get("llama.cpp")
    print(f"{name}: nats of KL divergence from the float32 reference, relative L2 of logits")
    print(f"{'':<34}{'mean KL':>9}{'max':>9}{'2nd half':>10}{'rel L2':>9}{'worst':>9}{'top-1':>8}")
    for side, found in figures.items():
        if side != "llama.cpp":
            print(f"{side:<34}{found['mean_nats']:>9.1e}{found['largest_nats']:>9.1e}"
                  f"{found['half_mean_nats']:>10.1e}{found['relative_l2']:>9.1e}"
                  f"{found['worst_relative_l2']:>9.1e}{found['top_percent']:>7.2f}%")  # fmt: skip
    if peer is not None:
        print(f"{'llama.cpp':<34}{'-':>9}{peer.largest:>9.1e}{peer.mean:>10.1e}{'-':>9}{'-':>9}"
              f"{peer.top_percent:>7.2f}%")  # fmt: skip
    native = [figures[PROMPT_ROWS], figures[STEP_ROWS]]
    return (
        all(found["mean_nats"] <= LARGEST_MEAN_NATS for found in native)
        and all(found["relative_l2"] <= LARGEST_RELATIVE_L2 for found in native)
        and (peer is None or all(found["half_mean_nats"] <= peer.mean for found in native))
    )
