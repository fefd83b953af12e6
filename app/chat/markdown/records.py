"""What Markdown says, as blocks that stand under each other. Pure.

Every block and run knows where it stands in the exact text it was read from, so that what is
selected on the screen is copied as the model wrote it. Offsets are of code points.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """How a run is set; ``href`` is where a link leads, ``tex`` the source of a formula.

    ``kind`` names what a part of code is, as the theme's colours do.
    """

    strong: bool = False
    emphasis: bool = False
    strike: bool = False
    code: bool = False
    href: str | None = None
    tex: str | None = None
    kind: str = ""


PLAIN = Style()


@dataclass(frozen=True, slots=True)
class Run:
    """Some text of one style.

    Attributes:
        text: as it is shown.
        span: where it stands in the source; as long as ``text`` where it is shown as it is written.
    """

    text: str
    span: range
    style: Style = PLAIN


Runs = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Nest:
    """Where a block stands inside of lists and quotes.

    Attributes:
        indent: lists around it; ``marker`` stands before the first block of an item.
        quotes: quotes around it.
    """

    indent: int = 0
    quotes: int = 0
    marker: str = ""


FLAT = Nest()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    runs: Runs
    span: range
    nest: Nest = FLAT


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    runs: Runs
    span: range
    nest: Nest = FLAT


@dataclass(frozen=True, slots=True)
class Code:
    """Code as it is written; ``content`` is where its text stands, without fences.

    ``content`` is as long as ``text`` unless the code is indented by what it stands in.
    """

    language: str
    text: str
    content: range
    span: range
    nest: Nest = FLAT


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, the first one the head; ``right`` says which columns end at the right."""

    rows: tuple[tuple[Runs, ...], ...]
    right: tuple[bool, ...]
    span: range
    nest: Nest = FLAT


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across."""

    span: range
    nest: Nest = FLAT


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that stands by itself."""

    tex: str
    span: range
    nest: Nest = FLAT


@dataclass(frozen=True, slots=True)
class Plain:
    """Text that is too long to be read as Markdown: shown as it is."""

    text: str
    span: range
    nest: Nest = FLAT


Block = Paragraph | Heading | Code | Table | Rule | Formula | Plain


@dataclass(frozen=True, slots=True)
class Group:
    """The blocks of one top-level block, such as a whole list; it begins at ``start``.

    What follows it in the text never changes it: only the last group of a text is open.
    """

    start: int
    blocks: tuple[Block, ...]
