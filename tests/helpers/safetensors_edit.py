"""Published checkpoints with one thing wrong: a folder whose files are changed field by field."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.tiny_safetensors import (
    CONFIG,
    INDEX,
    Array,
    Stored,
    file_bytes,
    llama_tensors,
    taken_apart,
    tensors_file,
    write_folder,
)

FIRST, SECOND = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
ONE = "model.safetensors"
PACKED: dict[str, Array | Stored] = {
    "m.weight": np.zeros((4, 16), np.uint32),
    "m.scales": np.ones((4, 2), np.float32),
    "m.biases": np.ones((4, 2), np.float32),
}
"""128 columns of 4 bits in groups of 64."""
EIGHT_BITS: dict[str, Array | Stored] = {
    "m.weight": Stored("F8_E4M3", (4, 200), bytes(800)),
    "m.weight_scale_inv": np.ones((1, 2), np.float32),
}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}


@dataclass(frozen=True, slots=True)
class Folder:
    """A checkpoint's folder that is changed in place."""

    path: Path

    def header(self, change: Callable[[dict[str, Any]], object], file: str = ONE) -> None:
        """Change a file's header; the tensors' bytes stay."""
        header, data = taken_apart((self.path / file).read_bytes())
        change(header)
        (self.path / file).write_bytes(file_bytes(header, data))

    def entry(self, name: str = "model.norm.weight", **fields: object) -> None:
        """Change fields of one tensor's entry."""
        self.header(lambda header: header[name].update(fields))

    def text(self, change: Callable[[str], str | bytes], file: str = ONE) -> None:
        """Change the text of a file's header."""
        header, data = taken_apart((self.path / file).read_bytes())
        made = change(json.dumps(header))
        raw = made if isinstance(made, bytes) else made.encode()
        (self.path / file).write_bytes(file_bytes(raw, data))

    def bytes(self, change: Callable[[bytes], bytes], file: str = ONE) -> None:
        """Change a file as it is."""
        (self.path / file).write_bytes(change((self.path / file).read_bytes()))

    def json(self, name: str, change: Callable[[Any], object]) -> None:
        """Change a small file; what ``change`` returns replaces it unless that is None."""
        parsed = json.loads((self.path / name).read_text())
        made = change(parsed)
        (self.path / name).write_text(json.dumps(parsed if made is None else made))

    def config(self, **keys: object) -> None:
        """Change keys of config.json, ``__`` for the dot; None takes a key out."""
        kept = {**json.loads((self.path / "config.json").read_text()), **keys}
        made = {key: value for key, value in kept.items() if value is not None}
        (self.path / "config.json").write_text(json.dumps(made))

    def places(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the index's names."""
        self.json(INDEX, lambda index: change(index["weight_map"]))

    def tensors(self, **changed: Array | Stored | None) -> None:
        """Give tensors of the module "m" other values; None takes one out."""
        parts: dict[str, Array | Stored | None] = {**self._parts()}
        parts |= {f"m.{key}": value for key, value in changed.items()}
        kept = {name: value for name, value in parts.items() if value is not None}
        (self.path / ONE).write_bytes(tensors_file(kept, {"format": "pt"}))

    def link_out(self, name: str) -> None:
        """Move a file out of the folder and leave a link to it."""
        outside = self.path.parent / f"outside-{name}"
        (self.path / name).rename(outside)
        (self.path / name).symlink_to(outside)

    def _parts(self) -> Mapping[str, Array | Stored]:
        is_mlx = "quantization" in json.loads((self.path / "config.json").read_text())
        return PACKED if is_mlx else EIGHT_BITS


def one_file(path: Path) -> Folder:
    """A sound llama in one file."""
    return Folder(write_folder(path, CONFIG, llama_tensors()))


def two_files(path: Path) -> Folder:
    """The same in two files with their index."""
    return Folder(write_folder(path, CONFIG, llama_tensors(), shards=2))


def mlx(path: Path) -> Folder:
    """One packed module of MLX; sound as a file, no model."""
    config = CONFIG | {"quantization": {"bits": 4, "group_size": 64}}
    return Folder(write_folder(path, config, PACKED))


def fp8(path: Path) -> Folder:
    """One module of eight-bit floats; sound as a file, no model."""
    return Folder(write_folder(path, CONFIG | {"quantization_config": FP8}, EIGHT_BITS))
