"""The native library's records, as ctypes sees them.

Field by field the structures of ``native/hearth_cpu.h``; ``tests/unit/kernels/test_cpu_records.py``
compares sizes. Pointers are plain addresses: whoever fills a record keeps what it points to alive.
"""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_float, c_int32, c_int64, c_void_p
from enum import IntEnum
from typing import Final

GROUP: Final = 32
PAGE_ROWS: Final = 256
WEIGHTS_A_PRODUCT: Final = 3
TILE_ROWS: Final = 8
"""The most rows of a tile; packed inputs are filled up to a multiple of it."""


class Isa(IntEnum):
    """Instruction sets that the library was compiled for."""

    NONE = 0
    AVX2 = 1
    AVX512 = 2


class Kind(IntEnum):
    """Operations of a step."""

    EMBED = 0
    RESIDUAL = 1
    PRODUCT = 2
    ANGLES = 3
    ROTATE = 4
    ATTEND = 5
    MERGE = 6
    GATE = 7
    DENSE = 8
    CHUNK = 9


class Activations(ctypes.Structure):
    """Inputs of a product; strides in elements, ``group_stride`` in groups of 32."""

    _fields_ = (
        ("values", c_void_p),
        ("codes", c_void_p),
        ("scales", c_void_p),
        ("sums", c_void_p),
        ("value_stride", c_int64),
        ("group_stride", c_int64),
    )


class Weight(ctypes.Structure):
    """A weight (rows, columns): the file's rows of quant blocks, or strips laid out of them."""

    _fields_ = (
        ("bytes", c_void_p),
        ("bias", c_void_p),
        ("rows", c_int64),
        ("columns", c_int64),
        ("row_bytes", c_int64),
        ("format", c_int32),
        ("is_strips", c_int32),
    )


class Embed(ctypes.Structure):
    """Row ``id`` of the embedding, times ``scale``, into ``residual``."""

    _fields_ = (
        ("weight", Weight),
        ("residual", c_void_p),
        ("scale", c_float),
        ("reserved", c_int32),
    )


class Residual(ctypes.Structure):
    """Adds to the residual and prepares the next product's inputs."""

    _fields_ = (
        ("residual", c_void_p),
        ("added", c_void_p),
        ("post", c_void_p),
        ("weight", c_void_p),
        ("to", ctypes.POINTER(Activations)),
        ("columns", c_int64),
        ("added_stride", c_int64),
        ("post_eps", c_float),
        ("eps", c_float),
    )


class Product(ctypes.Structure):
    """Up to three weights times the same inputs."""

    _fields_ = (
        ("source", ctypes.POINTER(Activations)),
        ("output", c_void_p),
        ("stride", c_int64),
        ("weights", Weight * WEIGHTS_A_PRODUCT),
        ("offsets", c_int64 * WEIGHTS_A_PRODUCT),
        ("count", c_int64),
        ("scratch", c_void_p),
        ("scratch_stride", c_int64),
        ("packed", c_void_p),
    )


class Angles(ctypes.Structure):
    """Cosines and sines of position * frequency."""

    _fields_ = (
        ("frequencies", ctypes.POINTER(c_double)),
        ("angles", c_void_p),
        ("pairs", c_int64),
        ("magnitude", c_float),
        ("reserved", c_int32),
    )


class LayerKv(ctypes.Structure):
    """One layer's pages: fp16 [page, 2, kv_head, 256, head_dim]."""

    _fields_ = (
        ("pages", c_void_p),
        ("kv_heads", c_int64),
        ("head_dim", c_int64),
        ("group", c_int32),
        ("window", c_int32),
    )


class Rotate(ctypes.Structure):
    """Norms and rotates q and k, writes k and v to their page."""

    _fields_ = (
        ("kv", LayerKv),
        ("rows", c_void_p),
        ("query_norm", c_void_p),
        ("key_norm", c_void_p),
        ("angles", c_void_p),
        ("stride", c_int64),
        ("heads", c_int64),
        ("k_offset", c_int64),
        ("v_offset", c_int64),
        ("pairs", c_int64),
        ("halves", c_int32),
        ("query_scale", c_float),
        ("query_eps", c_float),
        ("key_eps", c_float),
    )


class Attend(ctypes.Structure):
    """Attention over pages into partials, and partials into the next product's inputs."""

    _fields_ = (
        ("kv", LayerKv),
        ("queries", c_void_p),
        ("partials", c_void_p),
        ("to", ctypes.POINTER(Activations)),
        ("stride", c_int64),
        ("heads", c_int64),
        ("partial_pages", c_int64),
    )


class Chunk(ctypes.Structure):
    """Attention of a prompt chunk over pages into the next product's inputs."""

    _fields_ = (
        ("kv", LayerKv),
        ("queries", c_void_p),
        ("to", ctypes.POINTER(Activations)),
        ("scratch", c_void_p),
        ("stride", c_int64),
        ("heads", c_int64),
        ("scratch_stride", c_int64),
    )


class Gate(ctypes.Structure):
    """``activation(gate) * up`` into the next product's inputs."""

    _fields_ = (
        ("rows", c_void_p),
        ("to", ctypes.POINTER(Activations)),
        ("stride", c_int64),
        ("up_offset", c_int64),
        ("columns", c_int64),
        ("gelu", c_int32),
        ("reserved", c_int32),
    )


class Operation(ctypes.Structure):
    """One entry of a step's list."""

    _fields_ = (("kind", c_int64), ("record", c_void_p))


class Rows(ctypes.Structure):
    """Rows [first, first + rows) of ``total``; every array is indexed by row.

    ``tables[group * total + row]`` points to that row's int32 page ids.
    """

    _fields_ = (
        ("ids", c_void_p),
        ("positions", c_void_p),
        ("tables", c_void_p),
        ("first", c_int64),
        ("rows", c_int64),
        ("total", c_int64),
    )
