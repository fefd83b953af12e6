"""Private marks around what people wrote, so that it is found again in a rendered prompt.

A template gets each message's text between two private characters that stand in no text and no
template; where they come out says which part of the prompt a person wrote, whatever the text
says. The first letter of every control token spelled in a text is exchanged for a private
character as well: such a spelling stays recognisable even where a template moves text about.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from engine.errors import RequestInvalid
from engine.text.tokenizer import Tokenizer

_PRIVATE: Final = re.compile("[\U000f0000-\U0010fffd]")


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``start .. end`` of a prompt that come from message number ``message``."""

    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unmarked:
    """A rendering without its marks.

    Attributes:
        text: what the template wrote.
        spans: where the messages stand, in order; none for a message that was dropped or torn.
        masked: places of letters that begin a control token's spelling in a person's text.
    """

    text: str
    spans: tuple[Span, ...]
    masked: tuple[int, ...]


class Marks:
    """The private characters for one conversation.

    Args:
        texts: every message's text.
        written: what models wrote beside their texts; it is masked, never marked.
        template: its private characters are avoided like the texts' own.
        tokenizer: knows what control tokens look like.

    Raises:
        RequestInvalid: the texts use up the private characters of Unicode.
    """

    def __init__(
        self,
        texts: Sequence[str],
        template: str,
        tokenizer: Tokenizer,
        written: Sequence[str] = (),
    ) -> None:
        self._tokenizer = tokenizer
        self._texts = texts
        every = (*texts, *written)
        letters = sorted({text[at] for text in every for at in tokenizer.markers.starts(text)})
        free = _free(chain(every, (template,)))
        try:
            self._opening = [next(free) for _ in texts]
            self._closing = [next(free) for _ in texts]
            self._mask = {letter: next(free) for letter in letters}
        except StopIteration:
            raise RequestInvalid(
                "The conversation has too many private-use characters to be rendered."
            ) from None
        self._letters = {mask: letter for letter, mask in self._mask.items()}
        self._messages = {mark: index for index, mark in enumerate(self._opening)}
        self._ended = {mark: index for index, mark in enumerate(self._closing)}

    @property
    def masks_anything(self) -> bool:
        """Whether some text spells a control token."""
        return bool(self._mask)

    def masked(self, message: int) -> str:
        """The message's text with control tokens masked, letter for letter as long."""
        return self.mask(self._texts[message])

    def mask(self, text: str) -> str:
        """A text with control tokens masked."""
        if not self._mask:
            return text
        letters = list(text)
        for at in self._tokenizer.markers.starts(text):
            letters[at] = self._mask[text[at]]
        return "".join(letters)

    def wrapped(self, message: int) -> str:
        """The masked text between its marks; white space at its ends stays outside of them.

        So a template that trims a text does the same to the wrapped one. A blank text stays as it
        is: a template may ask whether there is any.
        """
        text = self.masked(message)
        core = text.strip()
        if not core:
            return text
        lead = text[: len(text) - len(text.lstrip())]
        trail = text[len(text.rstrip()) :]
        return lead + self._opening[message] + core + self._closing[message] + trail

    def remove(self, rendered: str) -> Unmarked:
        """Take every mark out of a rendering."""
        pieces: list[str] = []
        spans: list[Span] = []
        masked: list[int] = []
        opened: dict[int, int] = {}
        last = length = 0
        for found in _PRIVATE.finditer(rendered):
            pieces.append(rendered[last : found.start()])
            length += found.start() - last
            last = found.end()
            mark = found.group()
            if (message := self._messages.get(mark)) is not None:
                opened[message] = length
            elif (message := self._ended.get(mark)) is not None:
                if (start := opened.pop(message, None)) is not None:
                    spans.append(Span(message, start, length))
            else:
                letter = self._letters.get(mark)
                if letter is not None:
                    masked.append(length)
                pieces.append(letter or mark)
                length += 1
        pieces.append(rendered[last:])
        return Unmarked("".join(pieces), _apart(spans), tuple(masked))


def search(
    text: str, messages: Sequence[str], taken: Iterable[tuple[int, int]]
) -> tuple[Span, ...]:
    """Where the messages' texts stand, each after the one before, outside of ``taken``.

    The fallback for templates that do not keep the marks: good enough to say where a message
    begins, never used to decide what is a control token.
    """
    blocked = list(taken)
    spans: list[Span] = []
    position = 0
    for index, message in enumerate(messages):
        core = message.strip()
        start = text.find(core, position) if core else -1
        while start >= 0 and any(a < start + len(core) and start < b for a, b in blocked):
            start = text.find(core, start + 1)
        if start >= 0:
            position = start + len(core)
            spans.append(Span(index, start, position))
    return tuple(spans)


def _apart(spans: list[Span]) -> tuple[Span, ...]:
    """Spans in order, without any that begins inside the one before."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda one: (one.start, -one.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return tuple(kept)


def _free(texts: Iterable[str]) -> Iterator[str]:
    """Private-use characters of planes 15 and 16 that stand in none of the texts."""
    used = {letter for text in texts for letter in _PRIVATE.findall(text)}
    for code in chain(range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE)):
        if chr(code) not in used:
            yield chr(code)
