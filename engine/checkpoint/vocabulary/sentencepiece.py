"""Reads a tokenizer.model, SentencePiece's own file, as data.

The file is a protobuf message; of its fields these are read (number, kind, meaning):

    1  message, repeated   piece: 1 text, 2 float score, 3 type (GGUF's numbers are the same)
    2  message             trainer: 3 kind (1 unigram, 2 BPE), 40 unknown id
    3  message             normalizer: 2 character map, 3 whether a space is put before a text
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from engine.checkpoint.labels import quoted
from engine.checkpoint.vocabulary.table import (
    BYTE,
    BYTE_TOKEN,
    NORMAL,
    VOCABULARY_LIMIT,
    Refuse,
    Vocabulary,
)

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_VARINT_BYTES: Final = 10
_UNIGRAM, _BPE = 1, 2
Field = tuple[int, int | memoryview]


@dataclass(slots=True)
class _Pieces:
    """What the message's fields came to."""

    tokens: list[str] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    kind: int = _UNIGRAM
    unknown: int = 0
    mapped: bool = False
    prefixed: bool = True


class _Damaged(Exception):
    """The bytes are no such message; the text says where."""


def read_sentencepiece(content: bytes, refuse: Refuse) -> Vocabulary:
    """The vocabulary of a tokenizer.model.

    Args:
        content: the whole file.
        refuse: makes the error that names the file.

    Raises:
        CheckpointUnreadable: damaged, out of bounds, or a kind that is not read.
    """
    found = _Pieces()
    try:
        for number, value in _fields(memoryview(content)):
            _take(found, number, value)
    except _Damaged as error:
        raise refuse(f"is damaged: {error}") from error
    if not found.tokens:
        raise refuse("has no pieces")
    if found.kind != _BPE:
        raise refuse(f"is of SentencePiece's kind {found.kind}; its BPE (2) is read")
    if found.mapped:
        raise refuse("maps characters before it cuts text, which is not read")
    _check(found, refuse)
    return Vocabulary(
        model="llama",
        tokens=tuple(found.tokens),
        token_types=tuple(found.types),
        scores=tuple(found.scores),
        unknown_id=found.unknown if found.unknown < len(found.tokens) else None,
        add_space_prefix=found.prefixed,
    )


def _check(found: _Pieces, refuse: Refuse) -> None:
    for index, kind in enumerate(found.types):
        if kind == BYTE and not BYTE_TOKEN.fullmatch(found.tokens[index]):
            raise refuse(f"has {quoted(found.tokens[index])} as byte {index}")


def _take(found: _Pieces, number: int, value: int | memoryview) -> None:
    if number not in (1, 2, 3) or isinstance(value, int):
        return
    if number == 1:
        _take_piece(found, value)
    for inner, content in _fields(value) if number != 1 else ():
        if (number, inner) == (2, 3) and isinstance(content, int):
            found.kind = content
        elif (number, inner) == (2, 40) and isinstance(content, int):
            found.unknown = content
        elif (number, inner) == (3, 2) and isinstance(content, memoryview):
            found.mapped = len(content) > 0
        elif (number, inner) == (3, 3) and isinstance(content, int):
            found.prefixed = bool(content)


def _take_piece(found: _Pieces, piece: memoryview) -> None:
    text, score, kind = "", 0.0, NORMAL
    for number, value in _fields(piece):
        if number == 1 and isinstance(value, memoryview):
            try:
                text = bytes(value).decode("utf-8")
            except UnicodeDecodeError as error:
                raise _Damaged(f"piece {len(found.tokens)} is no text") from error
        elif number == 2 and isinstance(value, memoryview) and len(value) == 4:
            (score,) = struct.unpack("<f", value)
        elif number == 3 and isinstance(value, int):
            kind = value
    if kind not in range(NORMAL, BYTE + 1):
        raise _Damaged(f"piece {len(found.tokens)} has type {kind}")
    if len(found.tokens) == VOCABULARY_LIMIT:
        raise _Damaged(f"more than {VOCABULARY_LIMIT} pieces")
    found.tokens.append(text)
    found.types.append(kind)
    found.scores.append(score)


def _fields(message: memoryview) -> Iterator[Field]:
    """Number and value of each field; fixed-size numbers are given as their bytes."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield number, value
            continue
        if kind == _BYTES:
            size, place = _varint(message, place)
        elif kind in (_FOUR, _EIGHT):
            size = 4 if kind == _FOUR else 8
        else:
            raise _Damaged(f"a field of kind {kind}")
        if size > len(message) - place:
            raise _Damaged(f"a field of {size} bytes where {len(message) - place} are left")
        yield number, message[place : place + size]
        place += size


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and the place after it."""
    value = 0
    for shift, byte in enumerate(message[place : place + _VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, place + shift + 1
    raise _Damaged(f"a number without an end at byte {place}")
