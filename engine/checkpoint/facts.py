"""What a list of models shows of a checkpoint, read from its header alone.

Never raises for what a file holds: a checkpoint that cannot be used is listed with the sentence
that says why, beside whatever its header still tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from engine.checkpoint.gguf import map_part, model_name
from engine.checkpoint.gguf_header import Header
from engine.checkpoint.labels import plain
from engine.checkpoint.open import check_kind, open_checkpoint
from engine.checkpoint.source import MetadataValue
from engine.errors import CheckpointError
from kernels.quant.facts import FACTS, FACTS_BY_TYPE


@dataclass(frozen=True, slots=True)
class CheckpointFactsRecord:
    """One line of a list of models.

    Attributes:
        path: the file that was asked about.
        name: what the checkpoint calls itself, else the file name without its ending.
        architecture: the family key, None where the header does not tell.
        size_bytes: all files of the set together.
        part_count: files of the set.
        parameter_count: elements of all tensors, 0 where the table is not sound.
        quantization: the format that holds the most bytes, such as "Q4_1"; None without tensors.
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
    context_tokens: int | None = None
    vocabulary: int = 0
    has_template: bool = False
    error: str | None = None


def checkpoint_facts(path: Path) -> CheckpointFactsRecord:
    """Read what a list shows; ``path`` is a file, any part of a split one, or its folder."""
    try:
        with open_checkpoint(path) as source:
            tensors = source.tensors.values()
            return CheckpointFactsRecord(
                path=path,
                name=source.name,
                size_bytes=sum(file.stat().st_size for file in source.files),
                architecture=_text(source.metadata, "general.architecture"),
                part_count=len(source.files),
                parameter_count=sum(prod(facts.shape) for facts in tensors),
                quantization=_largest((facts.format, facts.size_bytes) for facts in tensors),
                context_tokens=_context_tokens(source.metadata),
                vocabulary=_vocabulary(source.metadata),
                has_template=_has_template(source.metadata),
            )
    except CheckpointError as error:
        return _of_header(path, error.sentence)


def _of_header(path: Path, error: str) -> CheckpointFactsRecord:
    """Facts of one file whose table or set is not sound."""
    size = path.stat().st_size if path.is_file() else 0
    try:
        check_kind(path)
        part = map_part(path)
    except CheckpointError:
        return CheckpointFactsRecord(path=path, name=plain(path.stem), size_bytes=size, error=error)
    header = part.header
    record = CheckpointFactsRecord(
        path=path,
        name=model_name(header.metadata, path),
        size_bytes=size,
        architecture=_text(header.metadata, "general.architecture"),
        quantization=_largest(_claimed_bytes(header)),
        context_tokens=_context_tokens(header.metadata),
        has_template=_has_template(header.metadata),
        error=error,
    )
    part.close()
    return record


def _claimed_bytes(header: Header) -> Iterable[tuple[str, int]]:
    for entry in header.entries:
        facts = FACTS_BY_TYPE.get(entry.type_id)
        if facts is not None:
            yield facts.name, facts.row_bytes(prod(entry.dims))


def _largest(sizes: Iterable[tuple[str, int]]) -> str | None:
    """The name with the most bytes, plain numbers only where there is nothing else."""
    total: Counter[str] = Counter()
    for name, size in sizes:
        total[name] += size
    packed = {name: size for name, size in total.items() if FACTS[name].block_elements > 1}
    chosen = packed or total
    return max(chosen, key=chosen.__getitem__).upper() if chosen else None


def _context_tokens(metadata: Mapping[str, MetadataValue]) -> int | None:
    value = metadata.get(f"{metadata.get('general.architecture')}.context_length")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _vocabulary(metadata: Mapping[str, MetadataValue]) -> int:
    tokens = metadata.get("tokenizer.ggml.tokens")
    return len(tokens) if isinstance(tokens, Sequence) and not isinstance(tokens, str) else 0


def _has_template(metadata: Mapping[str, MetadataValue]) -> bool:
    return bool(_text(metadata, "tokenizer.chat_template"))


def _text(metadata: Mapping[str, MetadataValue], key: str) -> str | None:
    value = metadata.get(key)
    return plain(value) if isinstance(value, str) else None
