"""An open GGUF checkpoint of one or several files.

Owns the read-only mappings of its files. Opened by ``engine.checkpoint.open``; everything it
offers was checked against the files' sizes before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from engine.checkpoint.gguf.header import Header, parse_header
from engine.checkpoint.gguf.tokenizer import generation_defaults, tokenizer_facts
from engine.checkpoint.labels import LIMIT, file_label, plain
from engine.checkpoint.mapped import MappedFile, headers_digest, map_file
from engine.checkpoint.source import (
    Dialect,
    GenerationDefaults,
    MetadataValue,
    TensorFacts,
    TokenizerFacts,
)
from engine.errors import CheckpointUnreadable
from engine.owner import Owner

TEMPLATE_LIMIT = 1 << 20
_NAME_LIMIT = 120


Part = MappedFile[Header]
"""One file of the set."""


def map_part(path: Path) -> Part:
    """Map a file read-only and parse its header; the caller owns the mapping."""
    return map_file(path, parse_header)


class GGUFCheckpoint(Owner):
    """``CheckpointSource`` over mapped GGUF files; use from one thread at a time.

    Metadata arrays and tensor bytes are views of the mapping. ``close`` drops it; a view that is
    still held keeps its file mapped until it goes too.
    """

    def __init__(self, parts: Sequence[Part], tensors: Mapping[str, TensorFacts]) -> None:
        """Take over ``parts``, whose first one holds the metadata, and their joint table."""
        self._parts = tuple(parts)
        self._tensors = MappingProxyType(dict(tensors))
        self._label = file_label(parts[0].path)

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file of the set, in order."""
        return tuple(part.path for part in self._parts)

    @property
    def name(self) -> str:
        """``general.name``, else the first file's name without its ending."""
        return model_name(self.metadata, self.files[0])

    @property
    def architecture(self) -> str:
        """``general.architecture``; raises CheckpointUnreadable where it is no word."""
        value = self.metadata.get("general.architecture")
        if not isinstance(value, str) or not 0 < len(value) <= LIMIT:
            raise CheckpointUnreadable(
                f"{self._label}: general.architecture is missing or no word", file=self._label
            )
        return value

    @property
    def dialect(self) -> Dialect:
        """GGUF's own."""
        return Dialect.GGUF

    @property
    def metadata(self) -> Mapping[str, MetadataValue]:
        """Key to value; arrays are lazy sequences, valid until ``close``."""
        return self._parts[0].header.metadata

    @property
    def tensors(self) -> Mapping[str, TensorFacts]:
        """Name to facts, in file order."""
        return self._tensors

    @cached_property
    def tokenizer(self) -> TokenizerFacts:
        """Tokenizer data as tuples, which outlive ``close``."""
        return tokenizer_facts(self.metadata, self._label)

    @property
    def chat_template(self) -> str | None:
        """Jinja source, None for a base model."""
        value = self.metadata.get("tokenizer.chat_template")
        if value is None or value == "":
            return None
        if not isinstance(value, str) or len(value) > TEMPLATE_LIMIT:
            raise CheckpointUnreadable(
                f"{self._label}: tokenizer.chat_template must be a string of at most "
                f"{TEMPLATE_LIMIT} characters",
                file=self._label,
            )
        return value

    @property
    def generation_defaults(self) -> GenerationDefaults:
        """Recommended sampling, and ids that the model must never draw."""
        return generation_defaults(self.metadata, self._label)

    @cached_property
    def header_digest(self) -> str:
        """SHA-256 over each file's size and header bytes, in order."""
        return headers_digest(self._parts).hexdigest()

    def tensor_bytes(self, name: str) -> memoryview:
        """The tensor's bytes, read-only, without a copy."""
        facts = self._tensors[name]
        view = memoryview(self._parts[facts.file].data)
        return view[facts.offset : facts.offset + facts.size_bytes]

    def close(self) -> None:
        """Unmap every file that no view holds; may be called twice."""
        for part in self._parts:
            part.close()


def model_name(metadata: Mapping[str, MetadataValue], path: Path) -> str:
    """The file's own name for itself on one line, else the file name without its ending."""
    value = metadata.get("general.name")
    own = " ".join(value[:_NAME_LIMIT].split()) if isinstance(value, str) else ""
    return plain(own or path.stem, _NAME_LIMIT)
