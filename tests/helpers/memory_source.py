"""A checkpoint made of arrays in memory: any metadata, any float32 tensors, no file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.checkpoint.source import (
    Dialect,
    GenerationDefaults,
    MetadataValue,
    TensorFacts,
    TokenizerFacts,
)

Arrays = Mapping[str, NDArray[np.float32]]
LLAMA = {
    "block_count": 2,
    "context_length": 1024,
    "embedding_length": 24,
    "feed_forward_length": 36,
    "attention.head_count": 3,
    "attention.head_count_kv": 1,
    "attention.key_length": 10,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 10000.0,
}
GEMMA3 = LLAMA | {"block_count": 7, "attention.sliding_window": 96}
VOCABULARY = 53


class MemorySource:
    """Implements ``engine.checkpoint.source.CheckpointSource`` over arrays."""

    def __init__(
        self, architecture: str, metadata: Mapping[str, MetadataValue], arrays: Arrays
    ) -> None:
        self.files = (Path("tiny.gguf"),)
        self.dialect = Dialect.GGUF
        self.name = "tiny"
        self.architecture = architecture
        self.metadata = {f"{architecture}.{key}": value for key, value in metadata.items()}
        self.tensors = {
            name: TensorFacts(name, array.shape, "f32", 0, 0, array.nbytes)
            for name, array in arrays.items()
        }
        self.chat_template: str | None = None
        self.generation_defaults = GenerationDefaults()
        self.header_digest = "0" * 64
        self._arrays = dict(arrays)

    @property
    def tokenizer(self) -> TokenizerFacts:
        """There is none."""
        raise NotImplementedError

    def tensor_bytes(self, name: str) -> memoryview:
        """The array's bytes, read-only."""
        return memoryview(self._arrays[name].tobytes())

    def close(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def random_arrays(architecture: str, keys: Mapping[str, Any], seed: int = 3) -> dict[str, Any]:
    """Every tensor that a checkpoint with these keys has, tied and without biases."""
    draw = np.random.default_rng(seed)
    hidden, inner = keys["embedding_length"], keys["feed_forward_length"]
    head_dim = keys["attention.key_length"]
    query = keys["attention.head_count"] * head_dim
    kv = keys["attention.head_count_kv"] * head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (VOCABULARY, hidden),
        "output_norm.weight": (hidden,),
    }
    for layer in range(keys["block_count"]):
        parts: dict[str, tuple[int, ...]] = {
            "attn_norm": (hidden,),
            "attn_q": (query, hidden),
            "attn_k": (kv, hidden),
            "attn_v": (kv, hidden),
            "attn_output": (hidden, query),
            "ffn_norm": (hidden,),
            "ffn_gate": (inner, hidden),
            "ffn_up": (inner, hidden),
            "ffn_down": (hidden, inner),
        }
        if architecture == "gemma3":
            parts |= {"attn_q_norm": (head_dim,), "attn_k_norm": (head_dim,)}
            parts |= {"post_attention_norm": (hidden,), "post_ffw_norm": (hidden,)}
        shapes |= {f"blk.{layer}.{part}.weight": shape for part, shape in parts.items()}
    return {
        name: (
            1 + 0.2 * draw.standard_normal(shape)
            if len(shape) == 1
            else 1.3 * draw.standard_normal(shape) / np.sqrt(shape[-1])
        ).astype(np.float32)
        for name, shape in shapes.items()
    }


def tiny_source(
    architecture: str = "llama",
    *,
    arrays: Arrays | None = None,
    without: tuple[str, ...] = (),
    **changed: MetadataValue,
) -> MemorySource:
    """A small valid checkpoint with some keys changed, added or left out.

    Args:
        arrays: tensors added or replaced.
        without: keys and tensors left out.
        changed: keys, with ``__`` for the dot: ``attention__head_count=3``.
    """
    keys: dict[str, Any] = dict(GEMMA3 if architecture == "gemma3" else LLAMA)
    tensors = random_arrays(architecture, keys) | dict(arrays or {})
    keys |= {key.replace("__", "."): value for key, value in changed.items()}
    return MemorySource(
        architecture,
        {key: value for key, value in keys.items() if key not in without},
        {name: array for name, array in tensors.items() if name not in without},
    )
