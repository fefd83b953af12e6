"""Puts a checkpoint's bytes into the planes of a packed weight.

Whole-number operations of torch only, so that the planes are the same bits on any device. The
caller cuts a weight into runs of rows (``rows_between``): packing one takes some four bytes of
intermediates an element.
"""

from __future__ import annotations

import torch

from kernels.checks import KernelShapeError
from kernels.packed.fields import TAKEN_APART
from kernels.packed.layout import BLOCK, LAYOUTS
from kernels.packed.weight import DTYPES, PackedWeight
from kernels.quant import FORMATS


def rows_between(weight: PackedWeight, first: int, stop: int) -> PackedWeight:
    """A weight's rows from ``first`` to before ``stop``: views of the same planes."""
    if not 0 <= first < stop <= weight.rows:
        raise KernelShapeError(f"{first}..{stop} are no rows of {weight.rows}.")

    def cut(plane: torch.Tensor | None) -> torch.Tensor | None:
        return None if plane is None else plane[first:stop]

    return PackedWeight(
        weight.layout,
        stop - first,
        weight.columns,
        weight.low[first:stop],
        cut(weight.high),
        weight.scales[first:stop],
        cut(weight.supers),
        cut(weight.minima),
        cut(weight.super_minima),
    )


def pack(format_name: str, raw: torch.Tensor, weight: PackedWeight) -> None:
    """Fill the planes of ``weight`` from rows of quant blocks.

    Args:
        format_name: one of ``LAYOUTS``, which is the weight's layout.
        raw: [rows, row_bytes] uint8, any strides, on the weight's device; only read.
        weight: written whole.

    Raises:
        KernelShapeError: ``raw`` is no such rows of this weight.
    """
    facts = FORMATS[format_name]
    blocks, rest = divmod(weight.columns, facts.block_elements)
    expected = (weight.rows, blocks * facts.block_bytes)
    if raw.dtype is not torch.uint8 or tuple(raw.shape) != expected or rest:
        raise KernelShapeError(f"{format_name} of {expected} bytes, not {list(raw.shape)}.")
    if LAYOUTS[format_name] != weight.layout:
        raise KernelShapeError(f"{format_name} does not go into planes of {weight.layout.name}.")
    found = TAKEN_APART[format_name](raw.reshape(-1, facts.block_bytes))
    _put_codes(found.codes.reshape(weight.rows, -1), weight)
    _put(found.scales, weight.scales)
    _put(found.supers, weight.supers)
    _put(found.minima, weight.minima)
    _put(found.super_minima, weight.super_minima)


def pack_mlx(
    codes: torch.Tensor, scales: torch.Tensor, minima: torch.Tensor, weight: PackedWeight
) -> None:
    """Fill the planes of ``weight`` from MLX's three tensors.

    Args:
        codes: [rows, columns * bits / 8] uint8, the row's stream of bits, lowest first.
        scales, minima: [rows, columns / group] in the dtype of the weight's planes.

    Raises:
        KernelShapeError: they do not belong to this weight.
    """
    bits = weight.layout.low_bits
    groups = (weight.rows, weight.columns // weight.layout.group)
    dtype = DTYPES[weight.layout.scale]
    if codes.dtype is not torch.uint8 or tuple(codes.shape) != (
        weight.rows,
        weight.columns * bits // 8,
    ):
        raise KernelShapeError(f"codes of {list(codes.shape)} are no {weight.columns} a row.")
    for each in (scales, minima):
        if tuple(each.shape) != groups or each.dtype is not dtype:
            raise KernelShapeError(f"{dtype} {list(groups)}, not {each.dtype} {list(each.shape)}.")
    if bits == 4:
        codes = torch.stack((codes & 15, codes >> 4), dim=-1)
    _put_codes(codes.reshape(weight.rows, -1), weight)
    _put(scales, weight.scales)
    _put(minima, weight.minima)


def _put(found: torch.Tensor | None, plane: torch.Tensor | None) -> None:
    if plane is not None and found is not None:
        plane.copy_(found.reshape(plane.shape))


def _put_codes(codes: torch.Tensor, weight: PackedWeight) -> None:
    """Codes [rows, columns] uint8 into the words of ``low`` and ``high``; see the layout."""
    layout = weight.layout
    blocks = codes.view(weight.rows, -1, BLOCK)
    low = _low_bytes(blocks, layout.low_bits)
    weight.low.copy_(low.reshape(weight.rows, -1).view(torch.int32))
    if weight.high is not None:
        high = _high_bytes(blocks >> layout.low_bits, layout.high_bits)
        weight.high.copy_(high.reshape(weight.rows, -1).view(torch.int32))


def _low_bytes(blocks: torch.Tensor, bits: int) -> torch.Tensor:
    """Field f of byte n is element n + f * bytes of a block."""
    if bits == 8:
        return blocks.contiguous()
    fields = (blocks & ((1 << bits) - 1)).view(*blocks.shape[:2], 8 // bits, -1)
    return _joined(fields.unbind(2), bits)


def _high_bytes(blocks: torch.Tensor, bits: int) -> torch.Tensor:
    """One bit: bit j of byte b is element 4j + b. Two: field f of byte 4i + b, 16i + 4f + b."""
    shape = (*blocks.shape[:2], bits, 8 // bits, 4)
    return _joined(blocks.reshape(shape).unbind(3), bits)


def _joined(fields: tuple[torch.Tensor, ...], bits: int) -> torch.Tensor:
    joined = fields[0].clone()
    for place, field in enumerate(fields[1:], 1):
        joined |= field << (place * bits)
    return joined.flatten(2)
