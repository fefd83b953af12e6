"""Shape checks of the kernels, and the one error they raise."""

from __future__ import annotations


class KernelShapeError(ValueError):
    """A tensor has a shape, dtype or layout that the kernel does not take."""
