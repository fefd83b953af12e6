"""A real model on the GPU, forced along what the processor says, against the processor's logits.

    python -m tests.bench gpu_quality --model FILE [--device cuda] [--prompts 20] [--tokens 64]

Each prompt is a piece of English; the processor (native library) reads it and says so many tokens,
greedily. The GPU reads the same prompt and is given the same tokens. Every row is compared: the
largest logit's token, the KL divergence, and for each row whose token differs how far apart the
two are in the processor's logits. Both are compared with float32 too where ``--exact`` is given.
Ends with 1 where fewer than 98 % agree or the mean KL is above 1e-3.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import Lane
from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import CheckpointSource
from engine.text.tokenizer import Tokenizer
from tests.bench._facts import ROOT
from tests.helpers.gpu_model import GpuSide
from tests.helpers.native_model import NativeSide, TorchSide

TEXT = ROOT / "tests/data/english.txt"
LEAST_AGREEMENT = 0.98
LARGEST_MEAN_NATS = 1e-3
PROMPT_TOKENS = 100
Side = GpuSide | NativeSide | TorchSide


def main(arguments: Sequence[str]) -> int:
    """Compare; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench gpu_quality")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--exact", action="store_true")
    wish = parser.parse_args(arguments)
    with open_checkpoint(wish.model) as source:
        prompts = pieces_of(source, wish.prompts)
        wanted, said = spoken(source, prompts, wish.tokens)
        with GpuSide(source, PROMPT_TOKENS + wish.tokens + 64, device=wish.device) as gpu:
            found = [forced(gpu, *pair) for pair in zip(prompts, said, strict=True)]
        figures = compared("GPU against the processor", wanted, found)
        if wish.exact:
            exact = TorchSide(source, PROMPT_TOKENS + wish.tokens + 64)
            true = [forced(exact, *pair) for pair in zip(prompts, said, strict=True)]
            compared("GPU against float32", true, found)
            compared("processor against float32", true, wanted)
    print(json.dumps({"bench": "gpu_quality", "model": wish.model.name, **figures}))
    good = figures["agreement"] >= LEAST_AGREEMENT and figures["mean_nats"] <= LARGEST_MEAN_NATS
    return int(not good)


def pieces_of(source: CheckpointSource, count: int) -> list[list[int]]:
    """Prompts: pieces of the text, one after another."""
    ids = Tokenizer(source.tokenizer).encode(TEXT.read_text(encoding="utf-8"), special=False)
    step = max(1, (len(ids) - PROMPT_TOKENS) // count)
    return [list(ids[at * step : at * step + PROMPT_TOKENS]) for at in range(count)]


def spoken(
    source: CheckpointSource, prompts: list[list[int]], tokens: int
) -> tuple[list[torch.Tensor], list[list[int]]]:
    """The processor's logits [token, vocabulary] for each prompt, and what it said."""
    logits, said = [], []
    with NativeSide(source, PROMPT_TOKENS + tokens + 64, threads=8) as side:
        for prompt in prompts:
            with side.lane() as lane:
                rows = [read(side, lane, prompt)]
                ids: list[int] = []
                while len(ids) < tokens:
                    ids.append(int(rows[-1].argmax()))
                    rows.append(stepped(side, lane, ids[-1]))
            logits.append(torch.stack(rows[:tokens]))
            said.append(ids)
    return logits, said


def forced(side: Side, prompt: list[int], ids: list[int]) -> torch.Tensor:
    """The same rows of another side, which is given the tokens: [token, vocabulary]."""
    with side.lane() as lane:
        rows = [read(side, lane, prompt)]
        rows += [stepped(side, lane, token) for token in ids[:-1]]
    return torch.stack(rows)


def read(side: Side, lane: Lane, prompt: list[int]) -> torch.Tensor:
    """The logits of a prompt's last row; it is one chunk."""
    assert len(prompt) <= PAGE_ROWS
    lane.extend(len(prompt))
    return side.runner.prompt_chunk(lane, prompt, 0).clone()


def stepped(side: Side, lane: Lane, token: int) -> torch.Tensor:
    """The logits after one more token."""
    lane.extend(1)
    return side.runner.step([lane], [token], [lane.length - 1])[0].clone()


def compared(what: str, wanted: list[torch.Tensor], found: list[torch.Tensor]) -> dict[str, float]:
    """Agreement, mean and largest KL, relative L2; prints them and each miss."""
    a, b = torch.cat(wanted).double(), torch.cat(found).double()
    p, q = a.log_softmax(-1), b.log_softmax(-1)
    nats = (p.exp() * (p - q)).sum(-1)
    same = a.argmax(-1) == b.argmax(-1)
    figures = {
        "rows": float(len(a)),
        "agreement": float(same.double().mean()),
        "mean_nats": float(nats.mean()),
        "largest_nats": float(nats.max()),
        "relative_l2": float((b - a).norm() / a.norm()),
    }
    print(what, " ".join(f"{key}={value:.3g}" for key, value in figures.items()))
    for row in torch.nonzero(~same).flatten().tolist():
        ours, theirs = int(b[row].argmax()), int(a[row].argmax())
        print(
            f"  row {row}: {ours} in place of {theirs}, apart {a[row, theirs] - a[row, ours]:.4f}"
        )
    return figures
