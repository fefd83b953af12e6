"""Running a ``ModelSpec`` on the native CPU library: prompt chunks and shared steps."""

from engine.models.native_limits import unsupported_by_native
from engine.native.buffers import NativeSizes, native_sizes
from engine.native.runner import NativeRunner
from engine.native.weights import StoredWeights

__all__ = [
    "NativeRunner",
    "NativeSizes",
    "StoredWeights",
    "native_sizes",
    "unsupported_by_native",
]
