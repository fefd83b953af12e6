"""What blocks say without the marks of Markdown, and whether a formula stands in them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from app.chat.markdown.records import Block, Code, Formula, Heading, Paragraph, Plain, Rule, Table


def holds(block: Block, tex: str) -> bool:
    """Whether a block has a formula in it."""
    match block:
        case Formula():
            return block.tex == tex
        case Paragraph() | Heading():
            return any(run.style.tex == tex for run in block.runs)
        case Table():
            return any(run.style.tex == tex for row in block.rows for cell in row for run in cell)
        case _:
            return False


def blocks_as_text(blocks: Iterable[Block]) -> str:
    """Blocks as they are read, one under the other."""
    return "\n".join(map(_as_text, blocks))


def _as_text(block: Block) -> str:
    match block:
        case Paragraph() | Heading():
            marker = f"{block.nest.marker} " if block.nest.marker else ""
            return marker + "".join(run.text for run in block.runs)
        case Code() | Plain():
            return block.text
        case Formula():
            return block.tex
        case Table():
            rows = ("\t".join("".join(r.text for r in c) for c in row) for row in block.rows)
            return "\n".join(rows)
        case Rule():
            return ""
