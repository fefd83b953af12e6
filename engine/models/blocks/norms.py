"""Norm weights stored less one: which checkpoints of a zero-centred family have them.

Published checkpoints of Qwen3-Next and its successors store such weights near 0. GGUF adds the one
at conversion, and so does mlx-lm, which turns the convolution's axes in the same pass; a file where
the two signs disagree was converted by half and would be read wrong either way.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from engine.checkpoint.source import CheckpointSource, Dialect
from engine.errors import CheckpointUnreadable
from engine.models.tensors import TensorNames

HALF_WAY = 0.5
_CODES = {"f32": ("f", 4), "f16": ("e", 2), "bf16": ("H", 2)}


def stored_less(
    source: CheckpointSource, tensors: TensorNames, norms: Sequence[str], convolution: str
) -> float:
    """What to add to the family's norm weights: 1 or 0.

    Args:
        norms: weights of norms, by GGUF's names; their mean decides.
        convolution: a weight of (channels, 1, kernel) as published, (channels, kernel, 1) of MLX.

    Raises:
        CheckpointUnreadable: an MLX checkpoint's norms and convolution disagree.
    """
    if source.dialect is Dialect.GGUF:
        return 0.0
    shape = tensors.shape(convolution, 3)
    offset = 0.0 if shape[-1] == 1 else 1.0
    if source.dialect is Dialect.PUBLISHED and offset:
        return offset
    values = [value for name in norms for value in _values(source, tensors, name)]
    mean = sum(values) / len(values)
    if (mean < HALF_WAY) is not bool(offset):
        raise CheckpointUnreadable(
            f"{tensors.file}: tensor {tensors.name(convolution)} has shape {shape}, as where norm "
            f"weights are stored {'less one' if offset else 'whole'}, but their mean is "
            f"{mean:.3f}.",
            tensor=tensors.name(convolution),
            mean=mean,
        )
    return offset


def _values(source: CheckpointSource, tensors: TensorNames, name: str) -> list[float]:
    (count,) = tensors.shape(name, 1)
    own = tensors.name(name)
    facts = source.tensors[own]
    if facts.format not in _CODES:
        raise CheckpointUnreadable(
            f"{tensors.file}: tensor {own} is stored as {facts.format}; wanted one of "
            f"{', '.join(_CODES)}.",
            tensor=own,
            found=facts.format,
        )
    code, _ = _CODES[facts.format]
    stored = struct.unpack(f"<{count}{code}", source.tensor_bytes(own))
    if facts.format != "bf16":
        return list(stored)
    widened = struct.pack(f"<{count}I", *(bits << 16 for bits in stored))
    return list(struct.unpack(f"<{count}f", widened))
