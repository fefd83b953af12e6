"""Tokenizer of one checkpoint: text to ids and back.

Owns nothing but memory. Used from one thread at a time: whether markers are matched is a switch on
the object underneath. Knows nothing of roles or templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken

from engine.checkpoint.source import TokenizerFacts
from engine.checkpoint.vocabulary.cuts import MarkerFlags
from engine.errors import RequestInvalid
from engine.text.vocabulary.build import build
from engine.text.vocabulary.check import MARKER_KINDS, check_facts, end_ids, mended_types
from engine.text.vocabulary.markers import Markers
from engine.text.vocabulary.pieces import USER_DEFINED, Decoder


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
        control_ids: ids that a reply never shows.
        hole_ids: ids that have no token and so are never drawn.
        markers: finds control tokens spelled in a text.
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
        self._tokens = facts.tokens
        self._types = mended_types(facts)
        self._built = build(facts, self._types, cache)
        self.notes = self._built.notes
        self._continued = False
        self.hole_ids = frozenset(i for i, token in enumerate(facts.tokens) if not token)
        self._add_markers(facts)

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self._tokens)

    @property
    def prefix_once(self) -> bool:
        """Whether only the very first text gets a space before it, not each one after a marker."""
        return self._built.steps.once

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
        """Like ``encode``, with the characters behind each id.

        Raises:
            RequestInvalid: a pattern of the file's own makes the text too slow to read.
        """
        text = clean(text)
        self._set_continued(continued)
        self._built.engine.encode_special_tokens = not special
        try:
            found = self._built.engine.encode(text, add_special_tokens=False)
        except BaseException as error:
            # The pattern's search gives up after ten million tries, by a panic of no public type.
            if type(error).__name__ != "PanicException":
                raise
            sentence = (
                "The checkpoint's tokenizer cannot cut this text: its pattern takes too long."
            )
            raise RequestInvalid(sentence, characters=len(text)) from error
        starts, ends = zip(*found.offsets, strict=True) if found.ids else ((), ())
        encoded = Encoded(found.ids, list(starts), list(ends))
        if special or self.control_ids.isdisjoint(encoded.ids):
            return encoded
        return self._without_control(text, encoded)

    def find(self, token: str) -> int | None:
        """The id of a marker (control or user-defined token) by its text."""
        index = self._built.engine.token_to_id(token)
        known = index is not None and self._types[index] in MARKER_KINDS
        return index if known else None

    def is_control(self, index: int) -> bool:
        """Whether the id is one that a reply never shows."""
        return index in self.control_ids

    def token_text(self, index: int) -> str:
        """The token as the file spells it."""
        return self._tokens[index]

    def token_bytes(self, index: int) -> bytes:
        """The bytes that a token stands for; a marker's are its own text."""
        return self._built.pieces.token_bytes(index)

    def decoder(self) -> Decoder:
        """A fresh decoder for one run of ids; it does not skip markers."""
        return self._built.pieces.decoder()

    def decode(self, ids: Sequence[int], *, skip_control: bool = True) -> str:
        """The text of a run of ids in the middle of a text: a leading space stays."""
        decoder = self.decoder()
        shown = (index for index in ids if not (skip_control and index in self.control_ids))
        return "".join([*map(decoder.push, shown), decoder.finish()])

    def _add_markers(self, facts: TokenizerFacts) -> None:
        tokens, types, odd = self._tokens, self._types, facts.marker_flags
        chosen = [i for i, kind in enumerate(types) if kind in MARKER_KINDS and tokens[i]]
        plain = MarkerFlags()
        self._built.engine.add_tokens(
            [_added(tokens[i], odd.get(i, plain), types[i] != USER_DEFINED) for i in chosen]
        )
        self.control_ids = frozenset(i for i in chosen if types[i] != USER_DEFINED)
        self.markers = Markers({tokens[i]: i for i in chosen if i in self.control_ids}, odd)

    def _set_continued(self, continued: bool) -> None:
        steps = self._built.steps
        if continued != self._continued and steps.fresh is not steps.continued:
            self._continued = continued
            (steps.continued if continued else steps.fresh).apply(self._built.engine)

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
        found = self._built.engine.encode(letter, add_special_tokens=False).ids
        return [(index, place, place + 1) for index in found]


def clean(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD, so that it has UTF-8 bytes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _added(text: str, flags: MarkerFlags, special: bool) -> AddedToken:
    return AddedToken(
        text,
        normalized=flags.normalized,
        lstrip=flags.lstrip,
        rstrip=flags.rstrip,
        single_word=flags.single_word,
        special=special,
    )
