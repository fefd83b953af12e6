"""What the parts of code are, by Pygments; off the UI thread. Bounded: long code stays plain."""

from __future__ import annotations

from typing import Final

MOST_SIGNS: Final = 200_000
MOST_SPANS: Final = 40_000

Spans = tuple[tuple[int, int, str], ...]
"""Begin, end and the token of the colour, in order."""

_KINDS: Final = (
    ("Token.Keyword", "code_keyword"),
    ("Token.Literal.String", "code_string"),
    ("Token.Literal.Number", "code_number"),
    ("Token.Comment", "code_comment"),
    ("Token.Name.Function", "code_name"),
    ("Token.Name.Class", "code_name"),
    ("Token.Name.Builtin", "code_name"),
    ("Token.Name.Tag", "code_keyword"),
    ("Token.Name.Attribute", "code_name"),
)


def spans_of(language: str, text: str) -> Spans:
    """The coloured parts of ``text``; none where the language is not known or the code is long."""
    if not language or len(text) > MOST_SIGNS:
        return ()
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415 - only where there is code
    from pygments.util import ClassNotFound  # noqa: PLC0415

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ()
    found: list[tuple[int, int, str]] = []
    for at, kind, value in lexer.get_tokens_unprocessed(text):
        colour = next((c for name, c in _KINDS if str(kind).startswith(name)), "")
        if colour and value.strip():
            found.append((at, at + len(value), colour))
        if len(found) > MOST_SPANS:
            return ()
    return tuple(found)
