"""What the ``gguf`` package reads in a file, in a form that is quick to compare.

Its reader needs half a minute for a vocabulary of 262,144 words, so the answers for the real
models are kept in ``tests/data/gguf_oracle.json``, made by

    python -m tests.helpers.gguf_oracle > tests/data/gguf_oracle.json
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf

from tests.helpers.models import gemma_path, smol_path

RECORD = Path(__file__).resolve().parents[1] / "data" / "gguf_oracle.json"
TensorLine = tuple[str, Sequence[int], str, int, int]


@dataclass(frozen=True, slots=True)
class Content:
    """Digests of a file's content.

    Attributes:
        keys: every key with the digest of its value.
        tensors: digest of the table: name, row-major shape, format, offset and size in file order.
        tensor_count: entries of the table.
    """

    keys: Mapping[str, str]
    tensors: str
    tensor_count: int


def content(values: Mapping[str, object], tensors: Iterable[TensorLine]) -> Content:
    """Digest a file's content, whoever read it."""
    table = [[name, [*shape], kind, offset, size] for name, shape, kind, offset, size in tensors]
    return Content(
        {key: _digest(value) for key, value in values.items()}, _digest(table), len(table)
    )


def read_by_gguf(path: Path) -> Content:
    """What the ``gguf`` package reads; slow."""
    reader = gguf.GGUFReader(path)
    values = {
        name: field.contents()
        for name, field in reader.fields.items()
        if not name.startswith("GGUF.")
    }
    return content(
        values,
        (
            (
                tensor.name,
                [int(size) for size in reversed(tensor.shape)],
                tensor.tensor_type.name.lower(),
                int(tensor.data_offset),
                int(tensor.n_bytes),
            )
            for tensor in reader.tensors
        ),
    )


def recorded(path: Path) -> Content:
    """The kept answer for a real model."""
    found = json.loads(RECORD.read_text())[path.name]
    return Content(found["keys"], found["tensors"], found["tensor_count"])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def main() -> None:
    """Print the record of both real models."""
    record = {}
    for path in (smol_path(), gemma_path()):
        found = read_by_gguf(path)
        record[path.name] = {
            "keys": dict(found.keys),
            "tensors": found.tensors,
            "tensor_count": found.tensor_count,
        }
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
