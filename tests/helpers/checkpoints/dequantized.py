"""The transformers model of a quantized checkpoint's own weights, decoded by others' code.

Which element of the file is which of the model is not derived from rules but asked of the
converter: it converts a second model whose every weight is its own number, and the file that comes
of it says where each went.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.numpy import load_file
from transformers import PreTrainedModel

from tests.helpers.checkpoints.shapes import Widths
from tests.helpers.checkpoints.variants import make

LARGEST_EXACT = 1 << 24
Array = np.ndarray[Any, Any]


def numbered(name: str, widths: Widths) -> PreTrainedModel:
    """The variant with weights 1, 2, 3, ... in place of random ones."""
    model = make(name, widths)
    first = 1
    with torch.no_grad():
        for parameter in model.parameters():
            end = first + parameter.numel()
            parameter.copy_(torch.arange(first, end).view(parameter.shape))
            first = end
    assert first <= LARGEST_EXACT, f"float32 cannot count to {first}"
    return model


def dequantized(name: str, widths: Widths, path: Path, numbers: Path) -> PreTrainedModel:
    """The variant with the matrices of the GGUF file at ``path``, decoded by gguf-py.

    Args:
        numbers: the float32 file of the ``numbered`` model.
    """
    values = {
        tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        for tensor in gguf.GGUFReader(path).tensors
        if tensor.data.ndim > 1
    }
    places = {tensor.name: tensor.data for tensor in gguf.GGUFReader(numbers).tensors}
    return _with_matrices(make(name, widths), values, places)


def dequantized_mlx(name: str, widths: Widths, folder: Path, numbers: Path) -> PreTrainedModel:
    """The variant with the matrices of an MLX folder, decoded by mlx-lm before.

    Args:
        numbers: the unquantized folder of the ``numbered`` model.
    """
    values, places = (
        {
            key: value
            for file in sorted(found.glob("*.safetensors"))
            for key, value in load_file(file).items()
            if value.ndim > 1
        }
        for found in (folder, numbers)
    )
    return _with_matrices(make(name, widths), values, places)


def _with_matrices(
    model: PreTrainedModel, values: Mapping[str, Array], places: Mapping[str, Array]
) -> PreTrainedModel:
    """Put each value where its number belongs; drafts' layers have none of their own."""
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).numpy()
    for key, value in values.items():
        if _layer(key) < model.config.num_hidden_layers:
            flat[places[key].astype(np.int64) - 1] = value
    with torch.no_grad():
        rest = torch.from_numpy(flat)
        for parameter in model.parameters():
            parameter.copy_(rest[: parameter.numel()].view(parameter.shape))
            rest = rest[parameter.numel() :]
    return model


def _layer(name: str) -> int:
    """The number of the layer that a GGUF tensor belongs to, -1 for one of none."""
    return int(name.split(".")[1]) if name.startswith("blk.") else -1
