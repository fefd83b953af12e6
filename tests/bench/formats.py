"""Every family in llama-quantize's formats: ours and llama.cpp's distance from the same weights.

    python -m tests.bench formats --quantize llama-quantize --peer-kld llama-perplexity

Tiny random models whose widths are multiples of 256 go through llama.cpp's converter and quantizer;
gguf-py decodes the file's weights, transformers computes them in float32, and both programs are
judged by those logits: relative L2 of our two executors, nats of KL divergence of the native one
and of llama.cpp over the same rows, the second half. Ends with 1 where the float32 executor is
further than rounding.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from engine.checkpoint.open import open_checkpoint
from engine.models import model_spec
from engine.native import unsupported_by_native
from tests.bench._facts import add_common, machine, print_json
from tests.bench._peer import SavedLogits, run_divergence
from tests.helpers.checkpoints.conversion import ToGguf, to_gguf
from tests.helpers.checkpoints.dequantized import dequantized, numbered
from tests.helpers.checkpoints.saving import save_published
from tests.helpers.checkpoints.shapes import BLOCKS_OF_256, VOCABULARY
from tests.helpers.checkpoints.variants import (
    GEMMA,
    VARIANTS,
    make,
    random_ids,
    reference_logits,
)
from tests.helpers.lone_model import LoneModel, relative_l2
from tests.helpers.native_model import NativeSide, prompt

KINDS = {
    "Q4_K_M": ("Q4_K_M",),
    "IQ4_XS": ("IQ4_XS",),
    "Q2_K": ("Q2_K",),
    "MXFP4": ("Q8_0", "--tensor-type", "ffn=mxfp4", "--tensor-type", "attn=mxfp4"),
}
"""What llama-quantize is told; MXFP4 is put into attention and feed-forwards by name."""
ROWS = 512
GEMMA_BEGIN = 2
FLOAT32_LIMIT = 1e-4


def main(arguments: Sequence[str]) -> int:
    """Judge every family in every kind; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench formats")
    parser.add_argument("--quantize", type=Path, required=True, help="llama-quantize")
    parser.add_argument("--peer-kld", type=Path, required=True, help="llama-perplexity")
    parser.add_argument("--family", action="append", choices=tuple(VARIANTS))
    add_common(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    print("| family | file | float32 L2 | native L2 | native KL | llama.cpp KL |")
    print("| --- | --- | --: | --: | --: | --: |")
    found: dict[str, dict[str, Any]] = {}
    names = options.family or [name for name, variant in VARIANTS.items() if variant.in_gguf]
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            found |= _judged(name, Path(folder), options)
    print_json({"bench": "formats", "rows": ROWS, "files": found} | machine(options.threads, None))
    return int(any(one["float32_l2"] > FLOAT32_LIMIT for one in found.values()))


def _judged(name: str, folder: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    whole, numbers = folder / "whole.gguf", folder / "numbers.gguf"
    save_published(name, make(name, BLOCKS_OF_256), folder / "saved")
    save_published(name, numbered(name, BLOCKS_OF_256), folder / "numbers")
    to_gguf(
        [
            ToGguf(str(folder / "saved"), str(whole)),
            ToGguf(str(folder / "numbers"), str(numbers)),
        ]
    )
    found = {}
    for kind, told in KINDS.items():
        path = folder / f"{kind}.gguf"
        _quantize(options.quantize, whole, path, told)
        found[f"{name} {kind}"] = figures = _figures(name, path, numbers, options)
        shown = [figures[key] for key in ("float32_l2", "native_l2", "native_nats", "peer_nats")]
        cells = " | ".join("-" if figure is None else f"{figure:.1e}" for figure in shown)
        print(f"| {name} | {kind} | {cells} |", flush=True)
    return found


def _quantize(program: Path, source: Path, target: Path, told: Sequence[str]) -> None:
    kind, *options = told
    subprocess.run(
        [str(program), *options, str(source), str(target), kind],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )


def _figures(
    name: str, path: Path, numbers: Path, options: argparse.Namespace
) -> dict[str, float | None]:
    ids = random_ids(ROWS)
    if VARIANTS[name].tokenizer == GEMMA:
        ids[0] = GEMMA_BEGIN
    wanted = reference_logits(dequantized(name, BLOCKS_OF_256, path, numbers), ids)
    base = path.with_suffix(".logits")
    with SavedLogits(base, ids, VOCABULARY) as saved:
        saved.add(wanted)
    with LoneModel(path, ROWS) as model:
        plain = model.all_logits(ids)
    native = _by_native(path, ids, options)
    half = slice(saved.first, saved.last)
    return {
        "float32_l2": relative_l2(plain, wanted),
        "native_l2": None if native is None else relative_l2(native, wanted),
        "native_nats": None if native is None else _nats(native[half], wanted[half]),
        "peer_nats": _peer_nats(options.peer_kld, path, base, options.threads),
    }


def _by_native(path: Path, ids: list[int], options: argparse.Namespace) -> torch.Tensor | None:
    with open_checkpoint(path) as source:
        if unsupported_by_native(model_spec(source)) is not None:
            return None
        side = NativeSide(source, len(ids), threads=options.threads, isa=options.isa)
        with side, side.lane() as lane:
            return prompt(side, lane, ids)


def _nats(found: torch.Tensor, wanted: torch.Tensor) -> float:
    p, q = wanted.double().log_softmax(-1), found.double().log_softmax(-1)
    return float((p.exp() * (p - q)).sum(-1).mean())


def _peer_nats(program: Path, path: Path, base: Path, threads: int) -> float | None:
    """None where llama.cpp does not run the file."""
    try:
        return run_divergence(program, path, base, ROWS, threads).mean
    except subprocess.CalledProcessError as error:
        last = re.findall(r"^.*(?:error|failed|GGML_ASSERT).*$", error.stdout or "", re.MULTILINE)
        print(f"llama.cpp does not run {path.name}: {last[-1:] or error}")
        return None
