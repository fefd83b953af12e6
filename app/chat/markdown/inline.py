"""Inline tokens as runs that know where they stand in the source. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from markdown_it.token import Token

from app.chat.markdown.math import INLINE
from app.chat.markdown.records import PLAIN, Run, Runs, Style

LONGEST_ENTITY: Final = 12
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`\u200b]+[^\s<>\"'`.,;:!?)\]}\u200b]")


def runs_of(children: Sequence[Token], source: str, span: range) -> Runs:
    """The runs of a block whose source is ``source[span]``."""
    found: list[Run] = []
    style, at = PLAIN, span.start
    for token in children:
        kind, _, side = token.type.rpartition("_")
        if side in ("open", "close") and kind in ("strong", "em", "s"):
            style = _flagged(style, kind, side == "open")
        elif token.type == "link_open":
            style = replace(style, href=str(token.attrGet("href") or ""))
        elif token.type == "link_close":
            at = _behind_link(source, at, span.stop)
            style = replace(style, href=None)
        else:
            for run in _placed(token, style, source, at, span.stop):
                at = run.span.stop
                found.append(run)
    return tuple(merged(_addresses(found)))


def _flagged(style: Style, kind: str, on: bool) -> Style:
    if kind == "strong":
        return replace(style, strong=on)
    return replace(style, emphasis=on) if kind == "em" else replace(style, strike=on)


def _placed(token: Token, style: Style, source: str, at: int, stop: int) -> Iterator[Run]:
    match token.type:
        case "text" | "text_special" | "html_inline":
            yield _found(token.content, style, source, at, stop)
        case "code_inline":
            yield _found(token.content, replace(style, code=True), source, at, stop)
        case "softbreak" | "hardbreak":
            # A model that breaks a line means it: verses, addresses, lists without marks.
            yield _found("\n", style, source, at, stop)
        case "image":
            shown = token.content or str(token.attrGet("src") or "")
            href = str(token.attrGet("src") or "")
            run = _found(shown, replace(style, href=href), source, at, stop)
            yield replace(
                run, span=range(run.span.start, _behind_link(source, run.span.stop, stop))
            )
        case kind if kind == INLINE:
            run = _found(token.markup, replace(style, tex=token.content), source, at, stop)
            yield replace(run, text=token.content)
        case _:
            return


def _found(text: str, style: Style, source: str, at: int, stop: int) -> Run:
    """``text`` where it stands next; where it is written otherwise (an entity), just here."""
    place = source.find(text, at, stop) if text else at
    if place < 0:
        return Run(text, range(at, _reached(text, source, at, stop)), style)
    return Run(text, range(place, place + len(text)), style)


def _reached(text: str, source: str, at: int, stop: int) -> int:
    """How far ``text`` goes, which is written with entities or escapes: sign by sign."""
    for sign in text:
        place = source.find(sign, at, min(at + LONGEST_ENTITY, stop))
        at = place + 1 if place >= 0 else at
    return max(at, 0)


def _behind_link(source: str, at: int, stop: int) -> int:
    """Behind ``](address)`` or ``>``, where that stands next."""
    if source.startswith("](", at):
        end = source.find(")", at, stop)
        return end + 1 if end >= 0 else at
    return at + 1 if source.startswith((">", "]"), at) else at


def _addresses(runs: Iterable[Run]) -> Iterator[Run]:
    """Bare addresses become links."""
    for run in runs:
        exact = len(run.text) == len(run.span)
        if run.style.href is not None or run.style.code or run.style.tex or not exact:
            yield run
            continue
        at = 0
        for match in _ADDRESS.finditer(run.text):
            yield from _part(run, at, match.start(), run.style)
            yield from _part(run, *match.span(), replace(run.style, href=match[0]))
            at = match.end()
        yield from _part(run, at, len(run.text), run.style)


def _part(run: Run, first: int, last: int, style: Style) -> Iterator[Run]:
    if first < last:
        start = run.span.start
        yield Run(run.text[first:last], range(start + first, start + last), style)


def merged(runs: Iterable[Run]) -> Iterator[Run]:
    """Neighbours of one style whose sources touch, as one."""
    last: Run | None = None
    for run in runs:
        if (
            last is not None
            and run.style == last.style
            and run.style.tex is None
            and last.span.stop == run.span.start
            and len(last.text) == len(last.span)
            and len(run.text) == len(run.span)
        ):
            last = Run(last.text + run.text, range(last.span.start, run.span.stop), run.style)
            continue
        if last is not None:
            yield last
        last = run
    if last is not None:
        yield last
