"""Perplexity of the real models on 10,000 tokens of English, beside llama.cpp's.

    python -m tests.bench perplexity [--model FILE]... [--peer llama-perplexity] [--float32]

The text is what Python says of itself (``pydoc_data.topics``), which every Python carries. As
llama.cpp's tool does, it is read in chunks that begin with the model's begin token, where it has
one, and the tokens of each chunk's second half count. Ends with 1 where the native library's
perplexity and llama.cpp's are more than half a per cent apart.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from pydoc_data import topics
from typing import Any

import torch

from engine.checkpoint.open import open_checkpoint
from engine.text.tokenizer import Tokenizer
from tests.bench._facts import add_common, machine, print_json
from tests.bench._peer import whole_report
from tests.helpers.models import gemma_path, smol_path
from tests.helpers.native_model import Both, NativeSide, TorchSide, prompt

CHUNK_ROWS = 2000
CHUNKS = 5
LARGEST_SHARE_APART = 0.005


def main(arguments: Sequence[str]) -> int:
    """Judge each model; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench perplexity")
    parser.add_argument("--model", type=Path, action="append", help="may be repeated")
    parser.add_argument("--peer", type=Path, help="llama-perplexity")
    parser.add_argument("--float32", action="store_true", help="the float32 executor, too: slow")
    add_common(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    text = english()
    found = {
        path.name: figures(path, text, options)
        for path in options.model or [smol_path(), gemma_path()]
    }
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    record = {"bench": "perplexity", "tokens": CHUNK_ROWS * CHUNKS, "models": found}
    record |= {"python": platform.python_version(), "text_sha256": digest}
    print_json(record | machine(options.threads, options.isa))
    apart = [abs(one["native"] / one["llama.cpp"] - 1) for one in found.values() if options.peer]
    return int(any(share > LARGEST_SHARE_APART for share in apart))


def english() -> str:
    """Enough text, one paragraph a line, without the drawings of tables."""
    whole = "\n".join(topics.topics[key] for key in sorted(topics.topics))
    paragraphs = (re.sub(r"\s+", " ", part).strip() for part in whole.split("\n\n"))
    return "\n".join(part for part in paragraphs if len(part) > 80)[:80_000]


def figures(path: Path, text: str, options: argparse.Namespace) -> dict[str, Any]:
    """Perplexity by side."""
    with open_checkpoint(path) as source:
        tokenizer = Tokenizer(source.tokenizer)
        begin = tokenizer.bos_id if tokenizer.add_bos else None
        ids = ([] if begin is None else [begin]) + tokenizer.encode(text, special=False)
        assert len(ids) >= CHUNK_ROWS * CHUNKS, f"the text has only {len(ids)} tokens"
        found = {}
        if options.float32:
            torch_side = TorchSide(source, CHUNK_ROWS)
            found["float32"] = perplexity(torch_side, ids, begin)
            torch_side.close()
        with NativeSide(source, CHUNK_ROWS, threads=options.threads, isa=options.isa) as side:
            found["native"] = perplexity(side, ids, begin)
    if options.peer:
        found["llama.cpp"] = peer(options.peer, path, text, options.threads)
    for side_name, figure in found.items():
        print(f"{path.name:<40}{side_name:<12}{figure:>10.4f}", flush=True)
    return found


def perplexity(side: Both, ids: list[int], begin: int | None) -> float:
    """Over the second half of each chunk, each chunk by itself."""
    first = CHUNK_ROWS // 2
    total = count = 0.0
    for start in range(0, CHUNK_ROWS * CHUNKS, CHUNK_ROWS):
        part = ids[start : start + CHUNK_ROWS]
        if begin is not None:
            part[0] = begin
        with side.lane() as lane:
            logits = prompt(side, lane, part)[first:-1]
        wanted = torch.tensor(part[first + 1 :])
        for rows, tokens in zip(torch.split(logits, 64), torch.split(wanted, 64), strict=True):
            nats = -rows.double().log_softmax(-1).gather(1, tokens[:, None])
            total, count = total + float(nats.sum()), count + len(tokens)
    return float(torch.tensor(total / count).exp())


def peer(program: Path, model: Path, text: str, threads: int) -> float:
    """llama.cpp's figure for the same text."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.write(text)
        file.flush()
        size = str(CHUNK_ROWS)
        report = whole_report(
            [str(program), "-m", str(model), "-f", file.name, "-t", str(threads), "-c", size,
             "-b", size, "--chunks", str(CHUNKS)],
            "Final estimate",
        )  # fmt: skip
    estimate = re.search(r"Final estimate: PPL = (\S+)", report)
    if estimate is None:
        raise ValueError(f"llama-perplexity printed no estimate:\n{report[-2000:]}")
    return float(estimate[1])
