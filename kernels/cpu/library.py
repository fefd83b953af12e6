"""The native CPU library: found, loaded, and run on a pool of threads.

``Pool`` owns the worker threads. It is used from one thread at a time; a call releases the
interpreter lock while it runs. Nothing here loads torch: the doctor and the handshake ask which
instruction set would be used.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import c_int32, c_int64, c_void_p
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kernels.cpu.records import Activations, Isa, Operation, Rows, Weight

if TYPE_CHECKING:
    import torch

_NAMES = {"linux": "hearth_cpu-linux-x86_64.so", "win32": "hearth_cpu-windows-x86_64.dll"}


class LibraryUnavailable(Exception):
    """The library cannot be used here; the message says why in one sentence."""


class Library:
    """The loaded shared library and its typed entry points. Holds no state of its own."""

    def __init__(self, path: Path | None = None) -> None:
        """Load it; raises LibraryUnavailable where this system or CPU has none."""
        name = _NAMES.get(sys.platform)
        if path is None and name is None:
            raise LibraryUnavailable(f"There is no CPU library for {sys.platform}.")
        where = path if path is not None else Path(__file__).parent / str(name)
        try:
            loaded = ctypes.CDLL(str(where))
        except OSError as error:
            raise LibraryUnavailable(f"The CPU library could not be loaded: {error}") from error
        self._best_isa = _entry(loaded, "hearth_best_isa", c_int32)
        self._has_format = _entry(loaded, "hearth_has_format", c_int32, c_int32)
        self.pool_open = _entry(loaded, "hearth_pool_open", c_void_p, c_int32, c_int32)
        self.pool_close = _entry(loaded, "hearth_pool_close", None, c_void_p)
        self.step = _entry(
            loaded, "hearth_step", None, c_void_p, c_void_p, c_int64, ctypes.POINTER(Rows)
        )
        self.decode = _entry(
            loaded,
            "hearth_decode",
            None,
            c_void_p,
            ctypes.POINTER(Weight),
            c_int64,
            c_int64,
            c_void_p,
            c_int64,
        )
        self.layout_bytes = _entry(
            loaded, "hearth_layout_bytes", c_int64, c_void_p, ctypes.POINTER(Weight)
        )
        self.layout = _entry(
            loaded, "hearth_layout", None, c_void_p, ctypes.POINTER(Weight), c_void_p
        )
        self.dense_scratch = _entry(loaded, "hearth_dense_scratch", c_int64, c_int32, c_int64)
        self.chunk_scratch = _entry(
            loaded, "hearth_chunk_scratch", c_int64, c_int64, c_int64, c_int64
        )
        self.prepare = _entry(
            loaded, "hearth_prepare", None, c_void_p, ctypes.POINTER(Activations), c_int64, c_int64
        )
        if self.best_isa() is Isa.NONE:
            raise LibraryUnavailable("This processor has no AVX2, FMA and F16C.")

    def best_isa(self) -> Isa:
        """The best instruction set that the library and this processor share."""
        return Isa(self._best_isa())

    def has_format(self, ggml_type: int) -> bool:
        """Whether products and decoding of this format are implemented."""
        return bool(self._has_format(ggml_type))


class Pool:
    """Worker threads of the library. A context manager; ``close`` ends the threads."""

    def __init__(self, library: Library, threads: int, isa: Isa | None = None) -> None:
        """Start ``threads`` - 1 workers; raises LibraryUnavailable where that fails."""
        self.isa = isa if isa is not None else library.best_isa()
        self.threads = threads
        self._library = library
        self._address: int | None = library.pool_open(threads, int(self.isa))
        if not self._address:
            raise LibraryUnavailable(f"{threads} threads for {self.isa.name} could not be started.")

    def step(self, operations: ctypes.Array[Operation], rows: Rows) -> None:
        """Run every operation in order for ``rows``."""
        address = ctypes.addressof(operations)
        self._library.step(self._open(), address, len(operations), ctypes.byref(rows))

    def decode(self, weight: Weight, first: int, to: torch.Tensor) -> None:
        """Decode weight rows ``first ...`` of a weight as the file stores it into ``to``.

        Args:
            to: [rows, columns], float32, rows contiguous.
        """
        self._library.decode(
            self._open(),
            ctypes.byref(weight),
            first,
            to.shape[0],
            to.data_ptr(),
            to.stride(0),
        )

    def layout_bytes(self, weight: Weight) -> int:
        """Bytes of a weight laid out in strips, 0 where its format has none."""
        return int(self._library.layout_bytes(self._open(), ctypes.byref(weight)))

    def layout(self, weight: Weight, to: torch.Tensor) -> None:
        """Lay a weight, as the file stores it, out in strips.

        Args:
            to: [layout_bytes] uint8, contiguous.
        """
        self._library.layout(self._open(), ctypes.byref(weight), to.data_ptr())

    def dense_scratch(self, rows: int) -> int:
        """Floats of scratch that a thread needs for dense products of at most ``rows`` rows."""
        return int(self._library.dense_scratch(int(self.isa), rows))

    def chunk_scratch(self, heads: int, kv_heads: int, head_dim: int) -> int:
        """Floats of scratch that a thread needs for a prompt chunk's attention."""
        return int(self._library.chunk_scratch(heads, kv_heads, head_dim))

    def prepare(self, to: Activations, rows: int, columns: int) -> None:
        """Fill codes, scales and sums from ``to.values``."""
        self._library.prepare(self._open(), ctypes.byref(to), rows, columns)

    def close(self) -> None:
        """End the threads; closing twice does nothing."""
        if self._address:
            self._library.pool_close(self._address)
            self._address = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> int:
        assert self._address, "the pool is closed"
        return self._address


def _entry(loaded: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function = getattr(loaded, name)
    function.restype = result
    function.argtypes = arguments
    entry: Callable[..., Any] = function
    return entry
