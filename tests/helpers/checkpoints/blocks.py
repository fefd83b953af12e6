"""GGUF files whose matrices are random valid quant blocks of any format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import torch

from kernels.cpu import cases
from kernels.quant import FORMATS
from tests.helpers.gguf_edit import Line, read_image
from tests.helpers.stored_source import random_stored

KEPT_TYPE = FORMATS["f32"].type_id


def with_random_blocks(source: Path, target: Path, formats: Sequence[str]) -> None:
    """Copy a GGUF file; its matrices that are not float32 take the formats in turn."""
    image = read_image(source)
    turns = cycle(formats)
    image.tensors = [
        _filled(line, next(turns)) if len(line.dims) > 1 and line.type_id != KEPT_TYPE else line
        for line in image.tensors
    ]
    target.write_bytes(image.to_bytes())


def _filled(line: Line, format_name: str) -> Line:
    columns, rows = line.dims[0], math.prod(line.dims[1:])
    size = 1.3 * columns**-0.5
    if format_name == "mxfp4":
        stored = _random_mxfp4(rows, columns, size)
    else:
        stored = random_stored(format_name, rows, columns, size=size)
    type_id = FORMATS[format_name].type_id
    assert type_id is not None
    return replace(line, type_id=type_id, data=stored.numpy().tobytes(), offset=None)


def _random_mxfp4(rows: int, columns: int, size: float) -> torch.Tensor:
    """Blocks whose elements are near ``size``; an exponent is a block's first byte."""
    packed = FORMATS["mxfp4"]
    stored = cases.random_weight("mxfp4", rows, columns)
    root = packed.decode(stored).square().mean().sqrt().item()
    stored.view(-1, packed.block_bytes)[:, 0] -= round(math.log2(root / size))
    return stored
