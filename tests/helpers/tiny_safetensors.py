"""Published checkpoints written field by field, sound ones and ones that no writer would write.

``file_bytes`` puts any header in front of any bytes; ``taken_apart`` is its inverse. Values are
numpy arrays; what numpy has no type for is ``Stored`` with its dtype's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import pack, unpack_from
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Json = Any
INDEX = "model.safetensors.index.json"
_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int8": "I8", "int16": "I16",
    "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32",
    "uint64": "U64", "bool": "BOOL",
}  # fmt: skip
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 24,
    "intermediate_size": 36,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 10,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": None,
    "tie_word_embeddings": True,
    "vocab_size": 53,
}


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as it lies in a file."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


def bf16(values: Array) -> Stored:
    """The upper halves of float32 numbers."""
    words = np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16
    return Stored("BF16", values.shape, words.astype("<u2").tobytes())


def stored(value: Array | Stored) -> Stored:
    """An array as it lies in a file."""
    if isinstance(value, Stored):
        return value
    return Stored(_NAMES[value.dtype.name], value.shape, np.ascontiguousarray(value).tobytes())


def file_bytes(header: Json, data: bytes, length: int | None = None) -> bytes:
    """A file: ``header`` as JSON (or raw bytes), then the tensors' bytes.

    Args:
        length: what the first eight bytes say; None for the truth.
    """
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return pack("<Q", len(text) if length is None else length) + text + data


def taken_apart(raw: bytes) -> tuple[dict[str, Json], bytes]:
    """Header and tensors' bytes of a sound file."""
    (length,) = unpack_from("<Q", raw)
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def tensors_file(
    tensors: Mapping[str, Array | Stored], metadata: Mapping[str, str] | None = None
) -> bytes:
    """A sound file of these tensors in this order."""
    header: dict[str, Json] = {} if metadata is None else {"__metadata__": dict(metadata)}
    data = b""
    for name, value in tensors.items():
        each = stored(value)
        end = len(data) + len(each.data)
        header[name] = {
            "dtype": each.dtype,
            "shape": list(each.shape),
            "data_offsets": [len(data), end],
        }
        data += each.data
    return file_bytes(header, data)


def write_folder(
    folder: Path,
    config: Mapping[str, Json],
    tensors: Mapping[str, Array | Stored],
    *,
    shards: int = 1,
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """A checkpoint's folder: its config, and one file or ``shards`` with their index."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    words = {"format": "pt"} if metadata is None else metadata
    if shards == 1:
        (folder / "model.safetensors").write_bytes(tensors_file(tensors, words))
        return folder
    names = list(tensors)
    places: dict[str, str] = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        own = names[number::shards]
        (folder / file).write_bytes(tensors_file({name: tensors[name] for name in own}, words))
        places |= dict.fromkeys(own, file)
    index = {"metadata": {"total_size": 0}, "weight_map": places}
    (folder / INDEX).write_text(json.dumps(index))
    return folder


def llama_tensors(seed: int = 5) -> dict[str, Array]:
    """Every tensor of ``CONFIG``'s model, random float32."""
    draw = np.random.default_rng(seed)
    hidden, inner, query, kv = 24, 36, 30, 10
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (53, hidden),
        "model.norm.weight": (hidden,),
    }
    for layer in range(2):
        stem = f"model.layers.{layer}"
        shapes |= {
            f"{stem}.input_layernorm.weight": (hidden,),
            f"{stem}.self_attn.q_proj.weight": (query, hidden),
            f"{stem}.self_attn.k_proj.weight": (kv, hidden),
            f"{stem}.self_attn.v_proj.weight": (kv, hidden),
            f"{stem}.self_attn.o_proj.weight": (hidden, query),
            f"{stem}.post_attention_layernorm.weight": (hidden,),
            f"{stem}.mlp.gate_proj.weight": (inner, hidden),
            f"{stem}.mlp.up_proj.weight": (inner, hidden),
            f"{stem}.mlp.down_proj.weight": (hidden, inner),
        }
    return {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
