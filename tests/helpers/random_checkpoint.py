"""Checkpoints of real geometry with random weights, as GGUF files, written at the disk's speed.

Speed and memory do not depend on what the weights are. Blocks are random bytes whose scales give a
weight zero mean and a standard deviation of 0.5 / sqrt(inputs), so that logits stay finite. Each
tensor is cut from a pool of such blocks, beginning at a random one; pools hold no whole number of
rows, so that rows of a tensor differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Quant = GGMLQuantizationType
POOL_BYTES = 24 << 20
FULL_EVERY = 4
DELTA_DIM = 128
CONVOLUTION = 4


@dataclass(frozen=True, slots=True)
class Geometry:
    """A model of Qwen 3.5's kind; ``experts`` 0 is a dense one, else ``wide`` is one expert's."""

    layers: int
    hidden: int
    wide: int
    heads: int
    kv_heads: int
    delta_keys: int
    delta_values: int
    tied: bool
    experts: int = 0
    used: int = 0
    vocabulary: int = 248_320
    head_dim: int = 256

    @property
    def channels(self) -> int:
        """Inputs of the convolution."""
        return (2 * self.delta_keys + self.delta_values) * DELTA_DIM

    @property
    def architecture(self) -> str:
        """The name that GGUF has for it."""
        return "qwen35moe" if self.experts else "qwen35"


GEOMETRIES = {
    "0.8b": Geometry(24, 1024, 3584, 8, 2, 16, 16, tied=True),
    "2b": Geometry(24, 2048, 6144, 8, 2, 16, 16, tied=True),
    "4b": Geometry(32, 2560, 9216, 16, 4, 16, 32, tied=True),
    "9b": Geometry(32, 4096, 12288, 16, 4, 16, 32, tied=False),
    "27b": Geometry(64, 5120, 17408, 24, 4, 16, 48, tied=False),
    "35b-a3b": Geometry(40, 2048, 512, 16, 2, 16, 32, tied=False, experts=256, used=8),
}
BASES = {"q4_k_m": Quant.Q4_K, "q8_0": Quant.Q8_0, "q4_0": Quant.Q4_0, "bf16": Quant.BF16}


@dataclass(frozen=True, slots=True)
class Planned:
    """One tensor: ``quant`` None for float32 numbers around ``middle``, ``spread`` apart."""

    name: str
    shape: tuple[int, ...]
    quant: GGMLQuantizationType | None = None
    middle: float = 0.0
    spread: float = 0.0

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """As the file has it: bytes of quantized rows, or numbers."""
        if self.quant is None:
            return self.shape
        elements, size = GGML_QUANT_SIZES[self.quant]
        return (*self.shape[:-1], self.shape[-1] // elements * size)


def write_random(
    path: Path, geometry: str, quant: str, *, layers: int | None = None, vocabulary: Path | None
) -> None:
    """Write one checkpoint.

    Args:
        geometry, quant: names in ``GEOMETRIES`` and ``BASES``; "q4_k_m" has some tensors in Q6_K.
        layers: fewer than the real model has.
        vocabulary: a GGUF file whose tokenizer is taken; None for a file without one.
    """
    shape = GEOMETRIES[geometry]
    shape = replace(shape, layers=layers or shape.layers)
    writer = GGUFWriter(str(path), shape.architecture)
    _metadata(writer, shape, f"random {geometry} {quant}")
    _tokenizer(writer, vocabulary)
    plan = list(planned(shape, quant))
    for each in plan:
        dtype = np.dtype(np.float32 if each.quant is None else np.uint8)
        size = math.prod(each.stored_shape) * dtype.itemsize
        writer.add_tensor_info(each.name, each.stored_shape, dtype, size, raw_dtype=each.quant)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    pools = Pools(np.random.default_rng(1))
    try:
        for each in plan:
            writer.write_tensor_data(pools.numbers(each))
    finally:
        writer.close()


def planned(shape: Geometry, quant: str) -> Iterator[Planned]:
    """Every tensor in the file's order."""
    base = BASES[quant]
    better = Quant.Q6_K if quant == "q4_k_m" else base
    hidden = shape.hidden
    first = better if shape.tied else base
    yield Planned("token_embd.weight", (shape.vocabulary, hidden), first)
    yield _ones("output_norm.weight", hidden)
    if not shape.tied:
        yield Planned("output.weight", (shape.vocabulary, hidden), better)
    for layer in range(shape.layers):
        names = f"blk.{layer}"
        of_layer = better if layer % 2 == 0 else base
        yield _ones(f"{names}.attn_norm.weight", hidden)
        full = (layer + 1) % FULL_EVERY == 0
        yield from (_attention if full else _delta)(shape, names, base, of_layer)
        yield _ones(f"{names}.post_attention_norm.weight", hidden)
        yield from (_experts if shape.experts else _body)(shape, names, base, of_layer)


def _ones(name: str, *shape: int) -> Planned:
    return Planned(name, shape, middle=1.0, spread=0.1)


def _attention(shape: Geometry, names: str, base: Quant, better: Quant) -> Iterator[Planned]:
    hidden, dim = shape.hidden, shape.head_dim
    yield Planned(f"{names}.attn_q.weight", (2 * shape.heads * dim, hidden), base)
    yield Planned(f"{names}.attn_k.weight", (shape.kv_heads * dim, hidden), base)
    yield Planned(f"{names}.attn_v.weight", (shape.kv_heads * dim, hidden), better)
    yield Planned(f"{names}.attn_output.weight", (hidden, shape.heads * dim), base)
    yield _ones(f"{names}.attn_q_norm.weight", dim)
    yield _ones(f"{names}.attn_k_norm.weight", dim)


def _delta(shape: Geometry, names: str, base: Quant, better: Quant) -> Iterator[Planned]:
    hidden, count = shape.hidden, shape.delta_values
    width = count * DELTA_DIM
    yield Planned(f"{names}.attn_qkv.weight", (shape.channels, hidden), better)
    yield Planned(f"{names}.attn_gate.weight", (width, hidden), base)
    yield Planned(f"{names}.ssm_conv1d.weight", (shape.channels, CONVOLUTION), spread=0.3)
    yield Planned(f"{names}.ssm_dt.bias", (count,), middle=0.1, spread=0.01)
    yield Planned(f"{names}.ssm_a", (count,), middle=-0.5, spread=0.05)
    yield Planned(f"{names}.ssm_beta.weight", (count, hidden), Quant.Q8_0)
    yield Planned(f"{names}.ssm_alpha.weight", (count, hidden), Quant.Q8_0)
    yield _ones(f"{names}.ssm_norm.weight", DELTA_DIM)
    yield Planned(f"{names}.ssm_out.weight", (hidden, width), base)


def _body(shape: Geometry, names: str, base: Quant, better: Quant) -> Iterator[Planned]:
    yield Planned(f"{names}.ffn_gate.weight", (shape.wide, shape.hidden), base)
    yield Planned(f"{names}.ffn_up.weight", (shape.wide, shape.hidden), base)
    yield Planned(f"{names}.ffn_down.weight", (shape.hidden, shape.wide), better)


def _experts(shape: Geometry, names: str, base: Quant, better: Quant) -> Iterator[Planned]:
    hidden, wide, count = shape.hidden, shape.wide, shape.experts
    yield Planned(f"{names}.ffn_gate_inp.weight", (count, hidden), spread=0.01)
    yield Planned(f"{names}.ffn_gate_exps.weight", (count, wide, hidden), base)
    yield Planned(f"{names}.ffn_up_exps.weight", (count, wide, hidden), base)
    yield Planned(f"{names}.ffn_down_exps.weight", (count, hidden, wide), better)
    yield Planned(f"{names}.ffn_gate_inp_shexp.weight", (hidden,), spread=0.01)
    yield Planned(f"{names}.ffn_gate_shexp.weight", (wide, hidden), Quant.Q8_0)
    yield Planned(f"{names}.ffn_up_shexp.weight", (wide, hidden), Quant.Q8_0)
    yield Planned(f"{names}.ffn_down_shexp.weight", (hidden, wide), Quant.Q8_0)


class Pools:
    """Random blocks, one pool a format and number of inputs, made when first asked for."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._pools: dict[tuple[GGMLQuantizationType, int], Bytes] = {}

    def numbers(self, tensor: Planned) -> np.ndarray[Any, Any]:
        """One tensor's contents as the file stores them."""
        if tensor.quant is None:
            drawn = self._random.standard_normal(tensor.shape, np.float32)
            return np.asarray(tensor.middle + tensor.spread * drawn, np.float32)
        pool = self._pool(tensor.quant, tensor.shape[-1])
        size, rows = GGML_QUANT_SIZES[tensor.quant][1], tensor.stored_shape
        first = int(self._random.integers(0, len(pool) // size)) * size
        return np.resize(np.roll(pool, -first), rows)

    def _pool(self, quant: GGMLQuantizationType, inputs: int) -> Bytes:
        found = self._pools.get((quant, inputs))
        if found is None:
            elements, size = GGML_QUANT_SIZES[quant]
            row_blocks = inputs // elements
            count = POOL_BYTES // size // row_blocks * row_blocks + row_blocks // 2 + 1
            found = _blocks(self._random, quant, count, 0.5 / math.sqrt(inputs))
            self._pools[quant, inputs] = found
        return found


def _blocks(random: np.random.Generator, quant: Quant, count: int, deviation: float) -> Bytes:
    """So many blocks, one after another."""
    size = GGML_QUANT_SIZES[quant][1]
    if quant == Quant.BF16:
        drawn = random.standard_normal(count, np.float32) * np.float32(deviation)
        return (drawn.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    made = np.frombuffer(random.bytes(count * size), np.uint8).reshape(count, size).copy()
    if quant == Quant.Q4_K:
        _put(made, 0, deviation / 170)
        _put(made, 2, 7.5 * deviation / 170)
    elif quant == Quant.Q6_K:
        made[:, 192:208] &= 0x1F
        _put(made, 208, deviation / (16 * 18.5))
    else:
        _put(made, 0, deviation / {Quant.Q8_0: 74, Quant.Q4_0: 4.6}[quant])
    return made.reshape(-1)


def _put(made: Bytes, at: int, scale: float) -> None:
    made[:, at : at + 2] = np.frombuffer(np.float16(scale).tobytes(), np.uint8)


def _metadata(writer: GGUFWriter, shape: Geometry, name: str) -> None:
    writer.add_name(name)
    writer.add_block_count(shape.layers)
    writer.add_context_length(262_144)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.wide)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e7)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_rope_dimension_count(64)
    writer.add_rope_dimension_sections([11, 11, 10, 0])
    writer.add_ssm_conv_kernel(CONVOLUTION)
    writer.add_ssm_state_size(DELTA_DIM)
    writer.add_ssm_group_count(shape.delta_keys)
    writer.add_ssm_time_step_rank(shape.delta_values)
    writer.add_ssm_inner_size(shape.delta_values * DELTA_DIM)
    writer.add_uint32(f"{shape.architecture}.full_attention_interval", FULL_EVERY)
    if shape.experts:
        writer.add_expert_count(shape.experts)
        writer.add_expert_used_count(shape.used)
        writer.add_expert_feed_forward_length(shape.wide)
        writer.add_expert_shared_feed_forward_length(shape.wide)


def _tokenizer(writer: GGUFWriter, vocabulary: Path | None) -> None:
    if vocabulary is None:
        writer.add_tokenizer_model("none")
        return
    for key, field in GGUFReader(str(vocabulary)).fields.items():
        if key.startswith("tokenizer."):
            inner = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(key, field.contents(), field.types[0], inner)
