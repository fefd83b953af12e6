"""The native library's records, as ctypes sees them.

Field by field the structures of ``native/hearth_cpu.h``; ``tests/unit/kernels/test_cpu_records.py``
compares sizes. Pointers are plain addresses: whoever fills a record keeps what it points to alive.
"""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_float, c_int32, c_int64, c_void_p
from enum import IntEnum
from types import MappingProxyType
from typing import Final

GROUP: Final = 32
PAGE_ROWS: Final = 256
WEIGHTS_A_PRODUCT: Final = 4
JOINED: Final = MappingProxyType(
    {
        "mlx2": 1002,
        "mlx3": 1003,
        "mlx4": 1004,
        "mlx5": 1005,
        "mlx6": 1006,
        "mlx8": 1008,
        "e2m1": 1010,
        "f8_e4m3": 1011,
    }
)
"""Numbers of the formats whose scales lie in a tensor of their own."""
STRIP_BITS: Final = MappingProxyType(
    {"mlx2": 4, "mlx3": 4, "mlx4": 4, "mlx5": 5, "mlx6": 6, "mlx8": 8, "e2m1": 4, "f8_e4m3": 8}
)
"""What a code of theirs takes in strips."""
SCALES: Final = MappingProxyType({"f32": 0, "f16": 1, "bf16": 30, "f8_e4m3": 1011, "e8m0": 1012})
"""Numbers of the formats that such scales have."""
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
    CAP = 10
    PER_LAYER = 11
    COMBINE = 12
    DELTA_MIX = 13
    DELTA_RULE = 14
    DELTA_OUT = 15
    ROUTE = 16
    EXPERTS_IN = 17
    EXPERTS_OUT = 18
    EXPERTS_DENSE_IN = 19
    EXPERTS_DENSE_OUT = 20


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
    """A weight (rows, columns): the file's rows of quant blocks, or strips laid out of them.

    ``scales`` and ``minima`` are those of a format of ``JOINED``, one every ``group`` columns.
    """

    _fields_ = (
        ("bytes", c_void_p),
        ("bias", c_void_p),
        ("rows", c_int64),
        ("columns", c_int64),
        ("row_bytes", c_int64),
        ("format", c_int32),
        ("is_strips", c_int32),
        ("scales", c_void_p),
        ("minima", c_void_p),
        ("group", c_int64),
        ("scale_format", c_int32),
        ("reserved", c_int32),
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
        ("scale", c_void_p),
        ("raw", c_int32),
        ("reserved", c_int32),
    )


class Combine(ctypes.Structure):
    """Adds a branch, normed and gated, to the sum of a layer's branches."""

    _fields_ = (
        ("added", c_void_p),
        ("post", c_void_p),
        ("gates", c_void_p),
        ("sum", c_void_p),
        ("columns", c_int64),
        ("added_stride", c_int64),
        ("gate_stride", c_int64),
        ("post_eps", c_float),
        ("first", c_int32),
    )


class PerLayer(ctypes.Structure):
    """What each layer takes in beside the residual, made once a row."""

    _fields_ = (
        ("embedding", Weight),
        ("projected", c_void_p),
        ("norm", c_void_p),
        ("to", c_void_p),
        ("stride", c_int64),
        ("layers", c_int64),
        ("width", c_int64),
        ("embedding_scale", c_float),
        ("projection_scale", c_float),
        ("scale", c_float),
        ("eps", c_float),
    )


class Cap(ctypes.Structure):
    """``cap * tanh(logits / cap)``."""

    _fields_ = (
        ("logits", c_void_p),
        ("stride", c_int64),
        ("columns", c_int64),
        ("cap", c_float),
        ("reserved", c_int32),
    )


class Product(ctypes.Structure):
    """Up to four weights times the same inputs."""

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
    """One layer's pages: fp16 [page, 2, kv_head, 256, head_dim].

    With ``scales``, float32 [page, 2, kv_head, 256], they are e4m3 codes in that order.
    """

    _fields_ = (
        ("pages", c_void_p),
        ("kv_heads", c_int64),
        ("head_dim", c_int64),
        ("group", c_int32),
        ("window", c_int32),
        ("scales", c_void_p),
    )


class Rotate(ctypes.Structure):
    """Norms and rotates q and k, writes k and v to their page."""

    _fields_ = (
        ("kv", LayerKv),
        ("rows", c_void_p),
        ("query_norm", c_void_p),
        ("key_norm", c_void_p),
        ("value_norm", c_void_p),
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
        ("value_eps", c_float),
        ("borrows", c_int32),
    )


class Attend(ctypes.Structure):
    """Attention over pages into partials, and partials into the next product's inputs."""

    _fields_ = (
        ("kv", LayerKv),
        ("queries", c_void_p),
        ("gates", c_void_p),
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
        ("gates", c_void_p),
        ("to", ctypes.POINTER(Activations)),
        ("scratch", c_void_p),
        ("stride", c_int64),
        ("heads", c_int64),
        ("scratch_stride", c_int64),
    )


class Gate(ctypes.Structure):
    """``activation(gates) * ups`` into the next product's inputs."""

    _fields_ = (
        ("gates", c_void_p),
        ("ups", c_void_p),
        ("to", ctypes.POINTER(Activations)),
        ("stride", c_int64),
        ("up_stride", c_int64),
        ("columns", c_int64),
        ("gelu", c_int32),
        ("copies", c_int32),
    )


class Delta(ctypes.Structure):
    """One gated delta rule layer: mixing, recurrence and output."""

    _fields_ = (
        ("rows", c_void_p),
        ("convolution", c_void_p),
        ("decay", c_void_p),
        ("time_bias", c_void_p),
        ("norm", c_void_p),
        ("states", c_void_p),
        ("tails", c_void_p),
        ("to", ctypes.POINTER(Activations)),
        ("stride", c_int64),
        ("gate_offset", c_int64),
        ("beta_offset", c_int64),
        ("alpha_offset", c_int64),
        ("state_stride", c_int64),
        ("tail_stride", c_int64),
        ("key_heads", c_int64),
        ("value_heads", c_int64),
        ("key_dim", c_int64),
        ("value_dim", c_int64),
        ("kernel", c_int64),
        ("length_eps", c_float),
        ("norm_eps", c_float),
        ("tiled", c_int32),
        ("chunk", c_int32),
    )


class Route(ctypes.Structure):
    """The experts that each row takes, and their weights."""

    _fields_ = (
        ("logits", c_void_p),
        ("scales", c_void_p),
        ("chosen", c_void_p),
        ("weights", c_void_p),
        ("places", c_void_p),
        ("starts", c_void_p),
        ("stride", c_int64),
        ("experts", c_int64),
        ("active", c_int64),
        ("scale", c_float),
        ("reserved", c_int32),
    )


class Experts(ctypes.Structure):
    """Products of rows with the weights of their experts."""

    _fields_ = (
        ("route", ctypes.POINTER(Route)),
        ("source", ctypes.POINTER(Activations)),
        ("weights", ctypes.POINTER(Weight) * 2),
        ("output", c_void_p),
        ("gathered", c_void_p),
        ("scratch", c_void_p),
        ("count", c_int64),
        ("stride", c_int64),
        ("scratch_stride", c_int64),
    )


class Operation(ctypes.Structure):
    """One entry of a step's list."""

    _fields_ = (("kind", c_int64), ("record", c_void_p))


class Rows(ctypes.Structure):
    """Rows [first, first + rows) of ``total``; every array is indexed by row.

    ``tables[group * total + row]`` points to that row's int32 page ids; ``slots`` are those of
    recurrent states.
    """

    _fields_ = (
        ("ids", c_void_p),
        ("positions", c_void_p),
        ("tables", c_void_p),
        ("first", c_int64),
        ("rows", c_int64),
        ("total", c_int64),
        ("slots", c_void_p),
    )
