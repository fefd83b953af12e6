"""Markdown as groups of blocks: CommonMark, tables, strikethrough, task lists, formulas. Pure.

HTML is text, pictures are links: nothing that a model writes is ever fetched or run. Bounded in
every way: what is too long to be read in time is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.chat.markdown.inline import runs_of
from app.chat.markdown.math import DISPLAY, use_math
from app.chat.markdown.records import (
    Block,
    Code,
    Formula,
    Group,
    Heading,
    Nest,
    Paragraph,
    Plain,
    Rule,
    Runs,
    Table,
)

LONGEST_TEXT: Final = 400_000
LONGEST_LINE: Final = 20_000
MOST_MARKS: Final = 4_000
"""Brackets and stars of one group: beyond, reading them takes quadratic time."""
DEEPEST: Final = 20
MOST_NESTED: Final = 100
_BREAK: Final = re.compile(r"\r\n|\r|\n")
_DEEP: Final = re.compile(
    r"^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])){16}|^[ \t]{80,}(?:[-*+]|\d{1,9}[.)])", re.MULTILINE
)
"""Lines of more nested lists and quotes than the parser follows: it would leave their text out."""
_TASK: Final = re.compile(r"\[([ xX])\]\s")


def groups_of(text: str, offset: int = 0) -> tuple[Group, ...]:
    """The groups of ``text``, which begins at ``offset`` of the whole."""
    if not text.strip():
        return ()
    lines = _Lines.of(text)
    if not lines.readable:
        return (Group(offset, (Plain(text, range(offset, offset + len(text))),)),)
    tokens = parser().parse(text)
    walk = _Walk(text, offset, lines)
    return tuple(walk.groups(tokens))


@cache
def parser() -> MarkdownIt:
    """The one parser: it is never changed after it was made."""
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": MOST_NESTED})
    made.enable(["table", "strikethrough"])
    made.disable(["html_block", "html_inline"])
    use_math(made)
    return made


@dataclass(frozen=True, slots=True)
class _Lines:
    """Where lines begin; one more for the end."""

    starts: tuple[int, ...]
    readable: bool

    @classmethod
    def of(cls, text: str) -> _Lines:
        starts = [0, *(match.end() for match in _BREAK.finditer(text))]
        if starts[-1] != len(text):
            starts.append(len(text))
        longest = max((b - a for a, b in pairwise(starts)), default=0)
        marks = text.count("[") + text.count("*") + text.count("_")
        readable = len(text) <= LONGEST_TEXT and longest <= LONGEST_LINE and marks <= MOST_MARKS
        return cls(tuple(starts), readable and _DEEP.search(text) is None)

    def span(self, first: int, last: int) -> range:
        """Offsets of the lines from ``first`` to before ``last``."""
        top = len(self.starts) - 1
        return range(self.starts[min(first, top)], self.starts[min(last, top)])


@dataclass(slots=True)
class _Walk:
    """Goes over the tokens of one text, knowing which lists and quotes are open."""

    text: str
    offset: int
    lines: _Lines
    lists: list[int | None] = field(default_factory=list)
    quotes: int = 0
    marker: str = ""

    def groups(self, tokens: Sequence[Token]) -> Iterator[Group]:
        blocks: list[Block] = []
        start, at = 0, 0
        while at < len(tokens):
            token = tokens[at]
            if token.level == 0 and token.nesting >= 0 and token.map:
                start = self.lines.span(token.map[0], token.map[1]).start
            made, used = self._block(tokens, at)
            blocks.extend(made)
            at += used
            ends = at >= len(tokens) or (tokens[at].level == 0 and tokens[at].nesting >= 0)
            if ends and blocks:
                yield Group(self.offset + start, tuple(blocks))
                blocks = []

    def _block(self, tokens: Sequence[Token], at: int) -> tuple[list[Block], int]:
        """The blocks that begin with token ``at``, and how many tokens they are."""
        token = tokens[at]
        match token.type:
            case "paragraph_open" | "heading_open":
                return [self._text(token, tokens[at + 1])], 3
            case "fence" | "code_block":
                return [self._code(token)], 1
            case "hr":
                return [Rule(self._span(token), self._nest())], 1
            case "table_open":
                return self._table(tokens, at)
            case kind if kind == DISPLAY:
                return [Formula(token.content, self._span(token), self._nest())], 1
            case _:
                self._container(token)
                return [], 1

    def _container(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self.lists.append(None)
            case "ordered_list_open":
                self.lists.append(int(token.attrGet("start") or 1))
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
            case "list_item_open":
                self.marker = self._item()
            case "blockquote_open" | "blockquote_close":
                self.quotes += token.nesting

    def _item(self) -> str:
        number = self.lists[-1] if self.lists else None
        if number is None:
            return "•"
        self.lists[-1] = number + 1
        return f"{number}."

    def _nest(self, marker: str | None = None) -> Nest:
        shown = self.marker if marker is None else marker
        self.marker = ""
        return Nest(min(len(self.lists), DEEPEST), min(self.quotes, DEEPEST), shown)

    def _span(self, token: Token) -> range:
        first, last = token.map or [0, 0]
        found = self.lines.span(first, last)
        return range(self.offset + found.start, self.offset + found.stop)

    def _text(self, token: Token, inline: Token) -> Block:
        span, marker = self._span(token), None
        runs = self._runs(inline.children or [], span)
        if self.marker and runs and (task := _TASK.match(runs[0].text)):
            marker = "☐" if task[1] == " " else "☑"
            runs = _without(runs, task.end())
        nest = self._nest(marker)
        if token.type == "heading_open":
            return Heading(int(token.tag[1:]), runs, span, nest)
        return Paragraph(runs, span, nest)

    def _runs(self, children: Sequence[Token], span: range) -> Runs:
        local = range(span.start - self.offset, span.stop - self.offset)
        return tuple(
            type(run)(
                run.text,
                range(run.span.start + self.offset, run.span.stop + self.offset),
                run.style,
            )
            for run in runs_of(children, self.text, local)
        )

    def _code(self, token: Token) -> Code:
        span = self._span(token)
        text = token.content.removesuffix("\n")
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        behind = self.text.find("\n", span.start - self.offset) + 1
        first = behind if token.type == "fence" and behind else span.start - self.offset
        found = self.text.find(text, first, span.stop - self.offset) if text else first
        content = range(found, found + len(text)) if found >= 0 else range(first, first)
        own = range(content.start + self.offset, content.stop + self.offset)
        return Code(language, text, own, span, self._nest())

    def _table(self, tokens: Sequence[Token], at: int) -> tuple[list[Block], int]:
        rows: list[list[Runs]] = []
        right: list[bool] = []
        span, end, reached = self._span(tokens[at]), at, 0
        reached = span.start
        while tokens[end].type != "table_close":
            token = tokens[end]
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                if len(rows) == 1:
                    right.append("right" in str(token.attrGet("style") or ""))
                cell = self._runs(tokens[end + 1].children or [], range(reached, span.stop))
                reached = cell[-1].span.stop if cell else reached
                rows[-1].append(cell)
            end += 1
        made = Table(tuple(map(tuple, rows)), tuple(right), span, self._nest())
        return [made], end - at + 1


def _without(runs: Runs, count: int) -> Runs:
    """The runs without the first ``count`` signs of the first one."""
    first = runs[0]
    shorter = type(first)(
        first.text[count:], range(first.span.start + count, first.span.stop), first.style
    )
    return (shorter, *runs[1:])
