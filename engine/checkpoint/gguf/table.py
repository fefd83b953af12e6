"""Judges the tensor table of one GGUF file against the file's size.

What comes out is sound: every tensor has a known format, whole blocks, an aligned place inside
the file, and no byte in common with another.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from engine.checkpoint.gguf.header import Header, TensorEntry
from engine.checkpoint.source import TensorFacts
from engine.errors import CheckpointUnreadable, UnsupportedFormat
from kernels.quant.facts import FACTS_BY_TYPE, FOREIGN_NAMES, FormatFacts


def tensor_table(header: Header, label: str, file_bytes: int, file: int) -> list[TensorFacts]:
    """Facts of every tensor, in file order.

    Args:
        label: the file's name, for sentences.
        file_bytes: the file's size.
        file: index of the file in its set.

    Raises:
        UnsupportedFormat: a tensor's format is not decoded here.
        CheckpointUnreadable: a tensor has no sound shape or place.
    """
    table = [_judged(entry, header, label, file_bytes, file) for entry in header.entries]
    in_order = sorted(table, key=lambda facts: facts.offset)
    for before, after in pairwise(in_order):
        if before.offset + before.size_bytes > after.offset:
            raise _refuse(
                label,
                after.name,
                f"starts at byte {after.offset}, inside {before.name!r}, which ends at byte "
                f"{before.offset + before.size_bytes}",
            )
    return table


def supported_formats() -> str:
    """The name of every format that GGUF has in one line, for sentences."""
    return ", ".join(facts.name.upper() for facts in FACTS_BY_TYPE.values())


def format_name(type_id: int) -> str:
    """What a type number is called; "type 139" where nobody knows."""
    facts = FACTS_BY_TYPE.get(type_id)
    if facts is not None:
        return facts.name.upper()
    known = FOREIGN_NAMES.get(type_id)
    return f"type {type_id} ({known})" if known else f"type {type_id}"


def _judged(
    entry: TensorEntry, header: Header, label: str, file_bytes: int, file: int
) -> TensorFacts:
    facts = FACTS_BY_TYPE.get(entry.type_id)
    if facts is None:
        raise UnsupportedFormat(
            f"{label}: tensor {entry.name!r} is stored as {format_name(entry.type_id)}, which "
            f"Hearth cannot read; it reads {supported_formats()}",
            file=label,
            tensor=entry.name,
            type=entry.type_id,
        )
    size = _size_bytes(entry, facts, label)
    if entry.offset % header.alignment:
        raise _refuse(
            label,
            entry.name,
            f"has offset {entry.offset}, which is no multiple of the alignment {header.alignment}",
        )
    offset = header.data_start + entry.offset
    if offset + size > file_bytes:
        raise _refuse(
            label,
            entry.name,
            f"ends at byte {offset + size}, but the file has {file_bytes} bytes; "
            "it was not downloaded whole or is damaged",
        )
    return TensorFacts(entry.name, entry.dims[::-1], facts.name, file, offset, size)


def _size_bytes(entry: TensorEntry, facts: FormatFacts, label: str) -> int:
    if 0 in entry.dims:
        raise _refuse(label, entry.name, f"has an empty dimension in {list(entry.dims)}")
    if entry.dims[0] % facts.block_elements:
        raise _refuse(
            label,
            entry.name,
            f"has rows of {entry.dims[0]} elements, which are no whole blocks of "
            f"{facts.block_elements} ({facts.name.upper()})",
        )
    return facts.row_bytes(prod(entry.dims))


def _refuse(label: str, name: str, sentence: str) -> CheckpointUnreadable:
    return CheckpointUnreadable(f"{label}: tensor {name!r} {sentence}", file=label, tensor=name)
