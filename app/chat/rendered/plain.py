"""What blocks say without the marks of Markdown, and whether a formula stands in them. Pure."""

from __future__ import annotations

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


def plain_text(blocks: list[Block], chosen: range) -> str:
    """Blocks as they are read, as far as they stand in ``chosen``."""
    lines: list[str] = []
    for block in blocks:
        if block.span.stop <= chosen.start or block.span.start >= chosen.stop:
            continue
        match block:
            case Paragraph() | Heading():
                text = "".join(
                    run.text
                    for run in block.runs
                    if run.span.start < chosen.stop and run.span.stop > chosen.start
                )
                marker = f"{block.nest.marker} " if block.nest.marker else ""
                lines.append(f"{marker}{text}")
            case Code() | Plain():
                lines.append(block.text)
            case Formula():
                lines.append(block.tex)
            case Table():
                rows = ("\t".join("".join(r.text for r in c) for c in row) for row in block.rows)
                lines.append("\n".join(rows))
            case Rule():
                lines.append("")
    return "\n".join(lines)
