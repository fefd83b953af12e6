"""An open checkpoint as its makers publish it, or as MLX's conversion writes it.

Owns the read-only mappings of its safetensors files. Opened by ``engine.checkpoint.open``;
everything that it offers was checked against the files' sizes before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from engine.checkpoint.foreign import refuse
from engine.checkpoint.labels import LIMIT
from engine.checkpoint.mapped import headers_digest
from engine.checkpoint.published.config import (
    CONFIG,
    CONFIG_LIMITS,
    GENERATION,
    flattened,
    has_file,
    inside,
    read_object,
)
from engine.checkpoint.published.json_text import Json, json_refusal
from engine.checkpoint.published.packing.schemes import MLXScheme, scheme_of
from engine.checkpoint.published.shards import INDEX, Shard, file_set, open_shards
from engine.checkpoint.published.table import TensorTable, tensor_table
from engine.checkpoint.published.tokenizer import published_tokenizer
from engine.checkpoint.published.words import (
    TEMPLATE,
    TEMPLATE_OBJECT,
    TOKENIZER_CONFIG,
    chat_template,
    checkpoint_name,
    generation_defaults,
)
from engine.checkpoint.source import (
    Dialect,
    GenerationDefaults,
    MetadataValue,
    TensorFacts,
    TokenizerFacts,
)
from engine.owner import Owner

_IDENTITY = (
    CONFIG,
    GENERATION,
    INDEX,
    TEMPLATE,
    TEMPLATE_OBJECT,
    TOKENIZER_CONFIG,
    "added_tokens.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
)
"""Small files that change what the checkpoint is, where they are there."""
_CLASS_PARTS = re.compile(r"For(CausalLM|ConditionalGeneration|MultimodalLM)$|Model$")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a checkpoint lies and what its config says.

    Attributes:
        file: the one file that was asked for, None for a folder.
        config: ``config.json`` as parsed.
        metadata: the same with keys joined by dots.
    """

    folder: Path
    file: Path | None
    config: Mapping[str, Json]
    metadata: Mapping[str, MetadataValue]


class PublishedCheckpoint(Owner):
    """``CheckpointSource`` over mapped safetensors files; use from one thread at a time.

    Tensor bytes are views of the mapping and begin at any byte, not only at multiples of an
    element's size. ``close`` drops it; a view that is still held keeps its file mapped until it
    goes too.
    """

    def __init__(
        self, place: Place, shards: Sequence[Shard], table: TensorTable, dialect: Dialect
    ) -> None:
        """Take over ``shards`` and what was read of them."""
        self._place = place
        self._shards = tuple(shards)
        self._table = table
        self._dialect = dialect

    @property
    def files(self) -> tuple[Path, ...]:
        """Every safetensors file of the set, in order."""
        return tuple(shard.path for shard in self._shards)

    @property
    def name(self) -> str:
        """The folder's name, or that of the one file that was asked for."""
        return checkpoint_name(self._place.folder, self._place.file)

    @property
    def architecture(self) -> str:
        """``model_type``, else what the class in ``architectures`` tells.

        Raises:
            CheckpointUnreadable: neither is a word.
        """
        return architecture(self._place.metadata)

    @property
    def dialect(self) -> Dialect:
        """As published, or MLX's."""
        return self._dialect

    @property
    def metadata(self) -> Mapping[str, MetadataValue]:
        """``config.json``, its keys joined by dots."""
        return self._place.metadata

    @property
    def tensors(self) -> Mapping[str, TensorFacts]:
        """Name to facts, in file order; scales and minima are within what they scale."""
        return self._table.listed

    @cached_property
    def tokenizer(self) -> TokenizerFacts:
        """Tokenizer data, which outlives ``close``."""
        return published_tokenizer(self._place.folder, self._place.config, self._generation)

    @cached_property
    def chat_template(self) -> str | None:
        """Jinja source, None for a base model."""
        return chat_template(self._place.folder)

    @cached_property
    def generation_defaults(self) -> GenerationDefaults:
        """Recommended sampling, and ids that the model must never draw."""
        return generation_defaults(
            flattened(self._generation, GENERATION), vocabulary(self._place.metadata)
        )

    @cached_property
    def header_digest(self) -> str:
        """SHA-256 over each file's size and header and the small files beside them."""
        digest = headers_digest(self._shards)
        for name in _IDENTITY:
            if has_file(self._place.folder, name):
                with inside(self._place.folder, name).open("rb") as stream:
                    digest.update(name.encode() + hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()

    def tensor_bytes(self, name: str) -> memoryview:
        """The bytes of a tensor, or of scales or minima, read-only, without a copy."""
        facts = self._table.listed.get(name) or self._table.parts[name]
        view = memoryview(self._shards[facts.file].data)
        return view[facts.offset : facts.offset + facts.size_bytes]

    def close(self) -> None:
        """Unmap every file that no view holds; may be called twice."""
        for shard in self._shards:
            shard.close()

    @cached_property
    def _generation(self) -> Mapping[str, Json]:
        if not has_file(self._place.folder, GENERATION):
            return {}
        return read_object(self._place.folder, GENERATION, CONFIG_LIMITS)


def open_published(folder: Path, file: Path | None = None) -> PublishedCheckpoint:
    """Open the checkpoint of a folder, or the set that one of its files belongs to.

    Raises:
        CheckpointUnreadable: missing, damaged, incomplete, or files at odds with each other; then
            nothing stays mapped.
        UnsupportedFormat: the weights are packed in a way that is not decoded.
    """
    if not has_file(folder, CONFIG):
        what = "the folder has weights" if file is None else "this is a safetensors file"
        raise refuse(file or folder, f"{what}, but there is no {CONFIG} beside it")
    config = read_object(folder, CONFIG, CONFIG_LIMITS)
    metadata = flattened(config, CONFIG)
    files = file_set(folder, None if file is None else file.name)
    with ExitStack() as opened:
        shards = open_shards(files)
        for shard in shards:
            opened.callback(shard.close)
        scheme = scheme_of(config, shards[0].header.metadata.get("format"))
        table = tensor_table(shards, scheme)
        opened.pop_all()
    dialect = Dialect.MLX if isinstance(scheme, MLXScheme) else Dialect.PUBLISHED
    place = Place(folder, file if len(shards) == 1 else None, config, MappingProxyType(metadata))
    return PublishedCheckpoint(place, shards, table, dialect)


def architecture(metadata: Mapping[str, MetadataValue]) -> str:
    """The family key of a flattened config; see ``PublishedCheckpoint.architecture``."""
    value = metadata.get("model_type")
    if isinstance(value, str) and 0 < len(value) <= LIMIT:
        return value
    classes = metadata.get("architectures")
    if isinstance(classes, tuple) and classes and isinstance(classes[0], str):
        word = _WORD_START.sub("_", _CLASS_PARTS.sub("", classes[0][:LIMIT])).lower()
        if word:
            return word
    raise json_refusal(CONFIG, "has no model_type, so the model's family is not known")


def vocabulary(metadata: Mapping[str, MetadataValue]) -> int:
    """Tokens of a flattened config, 0 where it does not tell."""
    for key in ("text_config.vocab_size", "vocab_size"):
        value = metadata.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return max(0, value)
    return 0
