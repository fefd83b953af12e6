"""Tokens by id: what every way of storing a published vocabulary comes to.

Ids without a token stay as holes (an empty text of an unused type): formats allow them, and they
are never drawn. Two tokens on one id, and ids out of bounds, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from engine.checkpoint.labels import quoted
from engine.checkpoint.vocabulary.cuts import CutFacts, MarkerFlags
from engine.errors import CheckpointUnreadable

VOCABULARY_LIMIT: Final = 1 << 19
MERGE_LIMIT: Final = 1 << 20
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
BYTE_TOKEN: Final = re.compile(r"<0x[0-9A-Fa-f]{2}>")
Refuse = Callable[[str], CheckpointUnreadable]


class AddedToken(msgspec.Struct, frozen=True):
    """One marker, as tokenizer.json and tokenizer_config.json list them."""

    content: str
    id: int = -1
    special: bool = False
    normalized: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A published vocabulary.

    Attributes:
        model: as in ``TokenizerFacts``.
        tokens: by id; empty at a hole.
        token_types: by id, GGUF's numbers.
        cut: the steps before merges; None where ``pre`` names a rule.
        flags: of the markers that are not matched just as they are spelled.
        begins_with: the token that the file itself puts before every text.
    """

    model: str
    tokens: tuple[str, ...]
    token_types: tuple[int, ...]
    merges: Sequence[str | tuple[str, str]] = ()
    scores: Sequence[float] = ()
    unknown_id: int | None = None
    cut: CutFacts | None = None
    pre: str | None = None
    add_space_prefix: bool = False
    flags: Mapping[int, MarkerFlags] = field(default_factory=dict)
    begins_with: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Tokens and types by id, and the flags of odd markers."""

    tokens: tuple[str, ...]
    types: tuple[int, ...]
    flags: Mapping[int, MarkerFlags]


def token_table(
    vocabulary: Mapping[str, int],
    added: Iterable[AddedToken],
    refuse: Refuse,
    *,
    unknown: str | None,
    bytes_spelled: bool,
) -> Table:
    """Lay tokens out by id.

    Args:
        vocabulary: text to id.
        added: markers; one that the vocabulary has too must have the same id there.
        refuse: makes the error that names the file.
        unknown: the text of the unknown token.
        bytes_spelled: whether "<0x0A>" is a byte.

    Raises:
        CheckpointUnreadable: no tokens, an id out of bounds, two tokens on one id.
    """
    markers = tuple(added)
    ids = dict(vocabulary)
    for marker in markers:
        if ids.setdefault(marker.content, marker.id) != marker.id:
            raise refuse(
                f"adds {quoted(marker.content)} as {marker.id}, but its id is {ids[marker.content]}"
            )
    tokens = _by_id(ids, refuse)
    types = [NORMAL if token else UNUSED for token in tokens]
    if bytes_spelled:
        for index, token in enumerate(tokens):
            if token.startswith("<0x") and BYTE_TOKEN.fullmatch(token):
                types[index] = BYTE
    for marker in markers:
        types[marker.id] = CONTROL if marker.special else USER_DEFINED
    if unknown is not None and unknown in ids:
        types[ids[unknown]] = UNKNOWN
    return Table(tokens, tuple(types), _odd_flags(markers))


def with_markers(vocabulary: Vocabulary, added: Iterable[AddedToken], refuse: Refuse) -> Vocabulary:
    """The same with markers that another file lists, each at the id that it names.

    Args:
        refuse: makes the error that names the vocabulary's own file.

    Raises:
        CheckpointUnreadable: an id out of bounds or of another token, a token of another id.
    """
    added = tuple(added)
    if all(_is_marker(vocabulary, marker) for marker in added):
        return vocabulary
    tokens, types = list(vocabulary.tokens), list(vocabulary.token_types)
    flags, known = dict(vocabulary.flags), {token: i for i, token in enumerate(tokens) if token}
    for marker in sorted(added, key=lambda one: one.id):
        if not 0 <= marker.id < VOCABULARY_LIMIT:
            raise refuse(f"gets {quoted(marker.content)} as id {marker.id}, out of bounds")
        more = max(0, marker.id + 1 - len(tokens))
        tokens += [""] * more
        types += [UNUSED] * more
        there = known.setdefault(marker.content, marker.id)
        if there != marker.id or tokens[marker.id] not in ("", marker.content):
            raise refuse(
                f"gets {quoted(marker.content)} as id {marker.id}, but has "
                f"{quoted(tokens[marker.id])} there, and that token as {there}"
            )
        if types[marker.id] in (NORMAL, UNUSED):
            tokens[marker.id] = marker.content
            types[marker.id] = CONTROL if marker.special else USER_DEFINED
            flags |= _odd_flags([marker])
    scores = vocabulary.scores
    if scores:
        scores = (*scores, *[0.0] * (len(tokens) - len(scores)))
    return replace(
        vocabulary, tokens=tuple(tokens), token_types=tuple(types), scores=scores, flags=flags
    )


def _is_marker(vocabulary: Vocabulary, marker: AddedToken) -> bool:
    """Whether the vocabulary's own file has the marker at that id."""
    known = vocabulary.tokens[marker.id : marker.id + 1] == (marker.content,)
    return known and marker.id >= 0 and vocabulary.token_types[marker.id] not in (NORMAL, UNUSED)


def _by_id(ids: Mapping[str, int], refuse: Refuse) -> tuple[str, ...]:
    if not ids:
        raise refuse("has no tokens")
    lowest, highest = min(ids.values()), max(ids.values())
    if lowest < 0 or highest >= VOCABULARY_LIMIT:
        wrong = lowest if lowest < 0 else highest
        raise refuse(f"has a token with id {wrong}; ids from 0 to {VOCABULARY_LIMIT - 1} are read")
    tokens = [""] * (highest + 1)
    for token, index in ids.items():
        if tokens[index]:
            raise refuse(f"gives id {index} to {quoted(tokens[index])} and to {quoted(token)}")
        tokens[index] = token
    return tuple(tokens)


def _odd_flags(markers: Iterable[AddedToken]) -> dict[int, MarkerFlags]:
    found = (
        (one.id, MarkerFlags(one.normalized, one.lstrip, one.rstrip, one.single_word))
        for one in markers
    )
    return {index: flags for index, flags in found if flags != MarkerFlags()}
