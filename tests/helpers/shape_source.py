"""A checkpoint of a size that no test could hold: names, shapes and formats, and no bytes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from engine.checkpoint.source import (
    Dialect,
    GenerationDefaults,
    MetadataValue,
    TensorFacts,
    TokenizerFacts,
)
from kernels.quant.facts import FACTS


class ShapeSource:
    """Implements ``engine.checkpoint.source.CheckpointSource``; to read a weight is an error."""

    def __init__(
        self,
        architecture: str,
        metadata: Mapping[str, MetadataValue],
        shapes: Mapping[str, tuple[int, ...]],
        *,
        dialect: Dialect = Dialect.PUBLISHED,
        format_name: str = "bf16",
    ) -> None:
        self.files = (Path("model.safetensors"),)
        self.dialect = dialect
        self.name = "shapes"
        self.architecture = architecture
        self.metadata = dict(metadata)
        facts = FACTS[format_name]
        self.tensors = {
            name: TensorFacts(
                name,
                shape,
                format_name,
                0,
                0,
                prod(shape) * facts.block_bytes // facts.block_elements,
            )
            for name, shape in shapes.items()
        }
        self.chat_template: str | None = None
        self.generation_defaults = GenerationDefaults()
        self.header_digest = "0" * 64

    @property
    def tokenizer(self) -> TokenizerFacts:
        """There is none."""
        raise NotImplementedError

    def tensor_bytes(self, name: str) -> NoReturn:
        """Nothing that is planned from metadata may come here."""
        raise AssertionError(f"the bytes of {name} were read")

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
