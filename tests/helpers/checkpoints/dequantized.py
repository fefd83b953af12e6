"""The transformers model of a quantized GGUF file's own weights, decoded by gguf-py.

Which element of the file is which of the model is not derived from rules but asked of the
converter: it converts a second model whose every weight is its own number, and the file that comes
of it says where each went.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch
from transformers import PreTrainedModel

from tests.helpers.checkpoints.shapes import Widths
from tests.helpers.checkpoints.variants import make

LARGEST_EXACT = 1 << 24


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
    """The variant with the matrices of the file at ``path``.

    Args:
        numbers: the float32 file of the ``numbered`` model.
    """
    model = make(name, widths)
    places = {tensor.name: tensor.data for tensor in gguf.GGUFReader(numbers).tensors}
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).numpy()
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.data.ndim > 1 and _layer(tensor.name) < model.config.num_hidden_layers:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            flat[places[tensor.name].astype(np.int64) - 1] = values
    with torch.no_grad():
        rest = torch.from_numpy(flat)
        for parameter in model.parameters():
            parameter.copy_(rest[: parameter.numel()].view(parameter.shape))
            rest = rest[parameter.numel() :]
    return model


def _layer(name: str) -> int:
    """The number of the layer that a tensor belongs to, -1 for one of none."""
    return int(name.split(".")[1]) if name.startswith("blk.") else -1
