"""Rows of codes that nothing was written to yet, and how two of them compare."""

from __future__ import annotations

import torch

from kernels.rows import QuantizedRows, empty_rows, quantized


def poisoned_rows(rows: int, columns: int, device: torch.device) -> QuantizedRows:
    """Room whose bytes would be noticed: codes of 99, scales of NaN."""
    found = empty_rows(rows, columns, device)
    for plane in (found.high, found.low, found.sums):
        plane.fill_(99)
    found.scales.fill_(torch.nan)
    return found


def poisoned(*shape: int, device: torch.device, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Room of NaN."""
    return torch.full(shape, torch.nan, device=device, dtype=dtype)


def same_rows(found: QuantizedRows, wanted: QuantizedRows) -> bool:
    """Whether two hold the same bits."""
    planes = ((found.high, wanted.high), (found.low, wanted.low), (found.sums, wanted.sums))
    scales = torch.equal(bits(found.scales), bits(wanted.scales))
    return scales and all(torch.equal(one, other) for one, other in planes)


def is_quantized(found: QuantizedRows, values: torch.Tensor) -> bool:
    """Whether ``found`` is what ``kernels.rows.quantized`` makes of float32 values on the CPU."""
    held = QuantizedRows(found.high.cpu(), found.low.cpu(), found.scales.cpu(), found.sums.cpu())
    return same_rows(held, quantized(values.cpu()))


def row_of(found: QuantizedRows, row: int) -> QuantizedRows:
    """One row as rows."""
    part = slice(row, row + 1)
    return QuantizedRows(found.high[part], found.low[part], found.scales[part], found.sums[part])


def bits(values: torch.Tensor) -> torch.Tensor:
    """Float32 values as whole numbers, so that NaN equals NaN."""
    return values.contiguous().view(torch.int32)


def error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest difference in a row over the row's largest magnitude, over all rows."""
    one, other = found.double().flatten(1).cpu(), wanted.double().flatten(1).cpu()
    largest = other.abs().amax(1).clamp(min=1e-30)
    return float(((one - other).abs().amax(1) / largest).max())
