"""What a list of models shows of a checkpoint, read from its header alone.

Never raises for what a file holds: a checkpoint that cannot be used is listed with the sentence
that says why, beside whatever its header still tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from engine.checkpoint.foreign import read_head
from engine.checkpoint.gguf.checkpoint import map_part, model_name
from engine.checkpoint.gguf.header import MAGIC, Header
from engine.checkpoint.labels import plain
from engine.checkpoint.open import is_published
from engine.checkpoint.published.checkpoint import architecture, vocabulary
from engine.checkpoint.published.config import CONFIG, CONFIG_LIMITS, flattened, read_object
from engine.checkpoint.published.shards import ENDING
from engine.checkpoint.source import CheckpointSource, Dialect, MetadataValue
from engine.errors import CheckpointError
from kernels.quant.facts import FACTS_BY_TYPE

PLAIN_NUMBERS = frozenset({"f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64"})
"""Formats of which an element is one number of its own."""


@dataclass(frozen=True, slots=True)
class CheckpointFactsRecord:
    """One line of a list of models.

    Attributes:
        path: the file or folder that was asked about.
        name: what the checkpoint calls itself, else the file name without its ending.
        architecture: the family key, None where the header does not tell.
        size_bytes: all files of the set together.
        part_count: files of the set.
        parameter_count: elements of all tensors, scales and minima not counted; 0 where the table
            is not sound.
        quantization: the format that holds the most bytes, such as "Q4_1"; None without tensors.
        format_bytes: bytes by format, scales and minima with their codes, the most first.
        context_tokens: the longest position the model was made for.
        vocabulary: tokens, 0 where the header does not tell.
        has_template: whether it can chat; a base model has none.
        error: one sentence where the checkpoint cannot be used.
    """

    path: Path
    name: str
    size_bytes: int
    architecture: str | None = None
    part_count: int = 1
    parameter_count: int = 0
    quantization: str | None = None
    format_bytes: Mapping[str, int] = field(default_factory=dict)
    context_tokens: int | None = None
    vocabulary: int = 0
    has_template: bool = False
    error: str | None = None


def facts_of(path: Path, source: CheckpointSource) -> CheckpointFactsRecord:
    """What a list shows of an open checkpoint."""
    tensors = source.tensors.values()
    metadata, is_gguf = source.metadata, source.dialect is Dialect.GGUF
    sizes = _totals((facts.format, facts.stored_bytes) for facts in tensors)
    return CheckpointFactsRecord(
        path=path,
        name=source.name,
        size_bytes=sum(file.stat().st_size for file in source.files),
        architecture=plain(source.architecture),
        part_count=len(source.files),
        parameter_count=sum(prod(facts.shape) for facts in tensors),
        quantization=_largest(sizes),
        format_bytes={name.upper(): size for name, size in sizes.most_common()},
        context_tokens=_context_tokens(metadata) if is_gguf else _positions(metadata),
        vocabulary=_vocabulary(metadata) if is_gguf else vocabulary(metadata),
        has_template=_has_template(source),
    )


def _has_template(source: CheckpointSource) -> bool:
    """Whether there is a template; a damaged one says so when the model is loaded."""
    try:
        return bool(source.chat_template)
    except CheckpointError:
        return False


def facts_of_damaged(path: Path, error: str) -> CheckpointFactsRecord:
    """Facts of files whose table or set is not sound; ``error`` is the sentence that says so."""
    try:
        if path.is_dir() and is_published(path):
            return _of_config(path, error)
        if read_head(path)[: len(MAGIC)] == MAGIC:
            return _of_header(path, error)
    except CheckpointError:
        pass
    size = path.stat().st_size if path.is_file() else 0
    name = plain(path.name if path.is_dir() else path.stem)
    return CheckpointFactsRecord(path=path, name=name, size_bytes=size, error=error)


def _of_config(folder: Path, error: str) -> CheckpointFactsRecord:
    metadata = flattened(read_object(folder, CONFIG, CONFIG_LIMITS), CONFIG)
    files = [path for path in folder.glob(f"*{ENDING}") if path.is_file()]
    return CheckpointFactsRecord(
        path=folder,
        name=plain(folder.name),
        size_bytes=sum(file.stat().st_size for file in files),
        architecture=plain(architecture(metadata)),
        part_count=len(files),
        context_tokens=_positions(metadata),
        vocabulary=vocabulary(metadata),
        error=error,
    )


def _of_header(path: Path, error: str) -> CheckpointFactsRecord:
    """Facts of one GGUF file from what its header claims."""
    part = map_part(path)
    metadata = part.header.metadata
    record = CheckpointFactsRecord(
        path=path,
        name=model_name(metadata, path),
        size_bytes=part.size_bytes,
        architecture=_text(metadata, "general.architecture"),
        quantization=_largest(_totals(_claimed_bytes(part.header))),
        context_tokens=_context_tokens(metadata),
        has_template=bool(_text(metadata, "tokenizer.chat_template")),
        error=error,
    )
    part.close()
    return record


def _claimed_bytes(header: Header) -> Iterable[tuple[str, int]]:
    for entry in header.entries:
        facts = FACTS_BY_TYPE.get(entry.type_id)
        if facts is not None:
            yield facts.name, facts.row_bytes(prod(entry.dims))


def _totals(sizes: Iterable[tuple[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, size in sizes:
        total[name] += size
    return total


def _largest(total: Counter[str]) -> str | None:
    """The name with the most bytes, plain numbers only where there is nothing else."""
    packed = {name: size for name, size in total.items() if name not in PLAIN_NUMBERS}
    chosen = packed or total
    return max(chosen, key=chosen.__getitem__).upper() if chosen else None


def _context_tokens(metadata: Mapping[str, MetadataValue]) -> int | None:
    value = metadata.get(f"{metadata.get('general.architecture')}.context_length")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _vocabulary(metadata: Mapping[str, MetadataValue]) -> int:
    tokens = metadata.get("tokenizer.ggml.tokens")
    return len(tokens) if isinstance(tokens, Sequence) and not isinstance(tokens, str) else 0


def _positions(config: Mapping[str, MetadataValue]) -> int | None:
    for key in ("text_config.max_position_embeddings", "max_position_embeddings"):
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _text(metadata: Mapping[str, MetadataValue], key: str) -> str | None:
    value = metadata.get(key)
    return plain(value) if isinstance(value, str) else None
