"""Formulas in Markdown, as rules of markdown-it: ``$..$``, ``$$..$$``, and both with backslashes.

Prices stay prices: a dollar opens only before a sign that is no blank, and closes only after one
and not before a digit (Pandoc's rule). A formula never reaches over a backtick.
"""

from __future__ import annotations

from typing import Final

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

LONGEST: Final = 4000
INLINE: Final = "math_inline"
DISPLAY: Final = "math_display"
_CLOSING: Final = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}


def use_math(parser: MarkdownIt) -> None:
    """Add the rules to a parser."""
    parser.inline.ruler.before("escape", INLINE, _inline)
    options: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("fence", DISPLAY, _block, options)


def _inline(state: StateInline, silent: bool) -> bool:
    source, start = state.src, state.pos
    opening = next((o for o in _CLOSING if source.startswith(o, start)), "")
    if not opening and source[start] == "$":
        return _dollars(state, silent)
    if not opening:
        return False
    end = source.find(_CLOSING[opening], start + 2, start + LONGEST)
    if end < 0:
        return False
    return _push(state, silent, start + 2, end, end + 2)


def _dollars(state: StateInline, silent: bool) -> bool:
    source, start = state.src, state.pos
    if source[start + 1 : start + 2].isspace() or start + 1 >= state.posMax:
        return False
    end = start + 1
    while True:
        end = source.find("$", end, start + LONGEST)
        if end < 0:
            return False
        before, after = source[end - 1], source[end + 1 : end + 2]
        if before == "\\":
            end += 1
            continue
        break
    if end == start + 1 or before.isspace() or after.isdigit():
        return False
    return _push(state, silent, start + 1, end, end + 1)


def _push(state: StateInline, silent: bool, first: int, last: int, after: int) -> bool:
    tex = state.src[first:last]
    if "`" in tex or not tex.strip():
        return False
    if not silent:
        token = state.push(INLINE, "", 0)
        token.content = tex
        token.markup = state.src[state.pos : after]
    state.pos = after
    return True


def _block(state: StateBlock, first_line: int, end_line: int, silent: bool) -> bool:
    """A formula, or what may become one: it ends at an empty line, closed or not.

    So text that comes later never makes a formula of blocks that were read already.
    """
    opening = _line(state, first_line)[:2]
    if opening not in ("$$", r"\["):
        return False
    lines = [_line(state, first_line)[2:]]
    number = first_line + 1
    while _CLOSING[opening] not in lines[-1] and number < end_line and not state.isEmpty(number):
        lines.append(_line(state, number))
        number += 1
    lines[-1], closing, rest = lines[-1].partition(_CLOSING[opening])
    closed = bool(closing) and not rest.strip(" .,;")
    if closing and not closed and len(lines) == 1:
        return False
    if silent:
        return True
    if closed:
        token = state.push(DISPLAY, "", 0)
        token.content = "\n".join(lines).strip()
        token.map = [first_line, number]
    else:
        while number < end_line and not state.isEmpty(number):
            number += 1
        _paragraph(state, first_line, number)
    state.line = number
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _paragraph(state: StateBlock, first_line: int, last_line: int) -> None:
    state.push("paragraph_open", "p", 1).map = [first_line, last_line]
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(first_line, last_line, state.blkIndent, False).strip()
    inline.map = [first_line, last_line]
    inline.children = []
    state.push("paragraph_close", "p", -1)
