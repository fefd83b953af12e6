"""Tokenizer of one checkpoint: text to ids and back.

Owns nothing but memory. Used from one thread at a time: whether markers are matched is a switch on
the object underneath. Knows nothing of roles or templates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tokenizers import AddedToken

from engine.checkpoint.source import TokenizerFacts
from engine.text.build import (
    byte_engine,
    check_facts,
    end_ids,
    mended_types,
    space_normalizer,
    spm_engine,
)
from engine.text.pieces import (
    CONTROL,
    UNKNOWN,
    USER_DEFINED,
    BytePieces,
    Decoder,
    Pieces,
    SpmPieces,
)

# Longer ones exist in no real vocabulary, and a hostile one must not make every look-up slow.
_MARKER_LIMIT: Final = 128


@dataclass(frozen=True, slots=True)
class Encoded:
    """Ids of one text, with the characters behind each: ``starts[i] <= c < ends[i]``."""

    ids: list[int]
    starts: list[int]
    ends: list[int]


class Tokenizer:
    """Text to ids and ids to bytes, exactly as the checkpoint's makers meant it.

    Attributes:
        bos_id, eos_id: as the file names them, None where it does not.
        end_ids: every id that ends a turn.
        add_bos: whether a prompt begins with ``bos_id``.
        size: number of ids.
        notes: what a person should know about how the file's tokenizer was read.
    """

    def __init__(self, facts: TokenizerFacts, cache: Path | None = None) -> None:
        """Build from a checkpoint's data.

        Args:
            facts: the tokenizer as the checkpoint stores it.
            cache: folder that keeps what is slow to rebuild (SPM merges); None keeps nothing.

        Raises:
            CheckpointUnreadable: the data contradict themselves or name an unknown model.
        """
        check_facts(facts)
        self.bos_id = facts.bos_id
        self.eos_id = facts.eos_id
        self.end_ids: tuple[int, ...] = tuple(sorted(end_ids(facts)))
        self.add_bos = facts.add_bos and facts.bos_id is not None
        self.size = len(facts.tokens)
        self._tokens = facts.tokens
        self._types = mended_types(facts)
        self._prefixed = facts.model == "llama" and facts.add_space_prefix
        self._continued = False
        self._pieces: Pieces
        self.notes: tuple[str, ...] = ()
        if facts.model == "llama":
            self._engine = spm_engine(facts, cache)
            self._pieces = SpmPieces(facts.tokens, self._types)
        else:
            self._engine, self.notes = byte_engine(facts)
            self._pieces = BytePieces(facts.tokens, self._types)
        self._add_markers()

    def encode(self, text: str, *, special: bool, continued: bool = False) -> list[int]:
        """Ids of a text, without BOS or EOS.

        Args:
            text: lone surrogates are read as U+FFFD.
            special: whether control tokens spelled in the text are those tokens (template text)
                or just text (what a person typed). User-defined tokens match in both.
            continued: the text follows other text, so an SPM space prefix is not put before it.
        """
        return self.encode_with_spans(text, special=special, continued=continued).ids

    def encode_with_spans(self, text: str, *, special: bool, continued: bool = False) -> Encoded:
        """Like ``encode``, with the characters behind each id."""
        text = clean(text)
        self._set_continued(continued)
        self._engine.encode_special_tokens = not special
        found = self._engine.encode(text, add_special_tokens=False)
        starts, ends = zip(*found.offsets, strict=True) if found.ids else ((), ())
        encoded = Encoded(found.ids, list(starts), list(ends))
        if special or self.control_ids.isdisjoint(encoded.ids):
            return encoded
        return self._without_control(text, encoded)

    def markers(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Control tokens spelled in a text: (start, end, id), leftmost first, the longest there."""
        position = 0
        while (found := self._marker_start.search(text, position)) is not None:
            start = found.start()
            position = start + 1
            for length in self._marker_lengths:
                # Near the text's end a slice is shorter than asked for, and may match all the same.
                spelled = text[start : start + length]
                index = self._markers.get(spelled)
                if index is not None:
                    position = start + len(spelled)
                    yield start, position, index
                    break

    def marker_starts(self, text: str) -> list[int]:
        """Every place where a control token's spelling begins, overlapping ones too."""
        return [
            found.start()
            for found in self._marker_start.finditer(text)
            if any(
                text[found.start() : found.start() + length] in self._markers
                for length in self._marker_lengths
            )
        ]

    def find(self, token: str) -> int | None:
        """The id of a marker (control or user-defined token) by its text."""
        index = self._engine.token_to_id(token)
        known = index is not None and self._types[index] in (UNKNOWN, CONTROL, USER_DEFINED)
        return index if known else None

    def is_control(self, index: int) -> bool:
        """Whether the id is one that a reply never shows."""
        return index in self.control_ids

    def token_text(self, index: int) -> str:
        """The token as the file spells it."""
        return self._tokens[index]

    def token_bytes(self, index: int) -> bytes:
        """The bytes that a token stands for; a marker's are its own text."""
        return self._pieces.token_bytes(index)

    def decoder(self) -> Decoder:
        """A fresh decoder for one run of ids; it does not skip markers."""
        return self._pieces.decoder()

    def decode(self, ids: Sequence[int], *, skip_control: bool = True) -> str:
        """The text of a run of ids in the middle of a text: a leading space stays."""
        decoder = self.decoder()
        shown = (index for index in ids if not (skip_control and index in self.control_ids))
        return "".join([*map(decoder.push, shown), decoder.finish()])

    def _add_markers(self) -> None:
        tokens, types = self._tokens, self._types
        kinds = (UNKNOWN, CONTROL, USER_DEFINED)
        chosen = [i for i, kind in enumerate(types) if kind in kinds and tokens[i]]
        self._engine.add_tokens(
            [
                AddedToken(tokens[i], normalized=False, special=types[i] != USER_DEFINED)
                for i in chosen
            ]
        )
        self.control_ids = frozenset(i for i in chosen if types[i] != USER_DEFINED)
        self._markers = {tokens[i]: i for i in self.control_ids if len(tokens[i]) <= _MARKER_LIMIT}
        self._marker_lengths = sorted({len(text) for text in self._markers}, reverse=True)
        self._marker_start = _beginnings(self._markers)

    def _set_continued(self, continued: bool) -> None:
        if self._prefixed and continued != self._continued:
            self._continued = continued
            self._engine.normalizer = space_normalizer(prefixed=not continued)

    def _without_control(self, text: str, encoded: Encoded) -> Encoded:
        """Spell out control tokens that merges alone built from a person's text."""
        ids: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        for index, start, end in zip(encoded.ids, encoded.starts, encoded.ends, strict=True):
            if index not in self.control_ids or end - start < 2:
                parts = [(index, start, end)]
            else:
                parts = [
                    part for place in range(start, end) for part in self._letter(text[place], place)
                ]
            ids += [part[0] for part in parts]
            starts += [part[1] for part in parts]
            ends += [part[2] for part in parts]
        return Encoded(ids, starts, ends)

    def _letter(self, letter: str, place: int) -> list[tuple[int, int, int]]:
        self._set_continued(True)
        found = self._engine.encode(letter, add_special_tokens=False).ids
        return [(index, place, place + 1) for index in found]


def _beginnings(markers: Iterable[str]) -> re.Pattern[str]:
    """Finds where one of the markers may begin, by its first two letters."""
    seconds: dict[str, set[str]] = {}
    for text in markers:
        seconds.setdefault(text[0], set()).add(text[1:2])
    parts = [
        re.escape(first)
        if "" in after
        else f"{re.escape(first)}(?=[{''.join(map(re.escape, sorted(after)))}])"
        for first, after in sorted(seconds.items())
    ]
    return re.compile("|".join(parts) or "(?!)")


def clean(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD, so that it has UTF-8 bytes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
