"""Markdown as blocks: what it says, where it stands, and that nothing of a text is ever lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.chat.markdown.parse import groups_of
from app.chat.markdown.records import (
    Block,
    Code,
    Formula,
    Heading,
    Nest,
    Paragraph,
    Plain,
    Rule,
    Run,
    Style,
    Table,
)


def blocks(text: str, offset: int = 0) -> list[Block]:
    """All blocks in order."""
    return [block for group in groups_of(text, offset) for block in group.blocks]


def runs(text: str) -> list[tuple[str, Style]]:
    """The runs of a single paragraph."""
    (found,) = blocks(text)
    assert isinstance(found, Paragraph)
    return [(run.text, run.style) for run in found.runs]


def every_run(text: str) -> Iterator[Run]:
    """All runs of a text, cells of tables too."""
    for block in blocks(text):
        match block:
            case Paragraph() | Heading():
                yield from block.runs
            case Table():
                for row in block.rows:
                    for cell in row:
                        yield from cell


def test_styles_are_told_apart() -> None:
    assert runs("a **b** *c* ~~d~~ `e` ***f***") == [
        ("a ", Style()),
        ("b", Style(strong=True)),
        (" ", Style()),
        ("c", Style(emphasis=True)),
        (" ", Style()),
        ("d", Style(strike=True)),
        (" ", Style()),
        ("e", Style(code=True)),
        (" ", Style()),
        ("f", Style(strong=True, emphasis=True)),
    ]


@pytest.mark.parametrize(
    ("text", "shown", "href"),
    [
        ("[a](http://b/c)", "a", "http://b/c"),
        ("<https://b.c/d>", "https://b.c/d", "https://b.c/d"),
        ("see https://b.c/d?e=f.", "https://b.c/d?e=f", "https://b.c/d?e=f"),
        ("![a cat](http://b/c.png)", "a cat", "http://b/c.png"),
        ("[file](file:///etc/passwd)", None, None),
        ("[js](javascript:alert(1))", None, None),
    ],
)
def test_a_link_is_shown_with_where_it_leads(
    text: str, shown: str | None, href: str | None
) -> None:
    found = [(run, style.href) for run, style in runs(text) if style.href is not None]
    assert found == ([] if shown is None else [(shown, href)])


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("so $a^2$.", ["a^2"]),
        (r"so \(a\) and \[b\]", ["a", "b"]),
        ("$$x$$ in line", ["x"]),
        ("costs $5 and $6", []),
        ("costs $5-$6", []),
        ("`$a$` and $ b $", []),
        ("`echo $HOME` costs $5", []),
        (r"\$a\$", []),
        ("$a `b$` c$", []),
    ],
)
def test_formulas_are_found_and_prices_and_code_are_none(text: str, tex: list[str]) -> None:
    assert [style.tex for _, style in runs(text) if style.tex is not None] == tex


@pytest.mark.parametrize("text", ["$$\nx = 1\n$$", "\\[\nx = 1\n\\]", "$$ x = 1 $$", "\\[x = 1\\]"])
def test_a_formula_by_itself_is_a_block(text: str) -> None:
    assert [b.tex for b in blocks(text) if isinstance(b, Formula)] == ["x = 1"]


def test_lists_and_quotes_know_how_deep_they_are() -> None:
    found = blocks("- a\n- [x] b\n  1. c\n  2. d\n\n     e\n\n> f\n>> g")
    assert [block.nest for block in found] == [
        Nest(1, 0, "•"),
        Nest(1, 0, "☑"),
        Nest(2, 0, "1."),
        Nest(2, 0, "2."),
        Nest(2, 0, ""),
        Nest(0, 1, ""),
        Nest(0, 2, ""),
    ]


def test_code_is_exact_and_knows_where_it_stands() -> None:
    text = "a\n\n```python title\nx = '$y$'\n\n\\(z\\)\n```\nb"
    code = next(b for b in blocks(text, 7) if isinstance(b, Code))
    assert (code.language, code.text) == ("python", "x = '$y$'\n\n\\(z\\)")
    assert text[code.content.start - 7 : code.content.stop - 7] == code.text


def test_an_open_fence_is_code_to_its_end() -> None:
    (code,) = blocks("```c\nint x;\n")
    assert isinstance(code, Code) and code.text == "int x;"


def test_a_table_has_rows_and_sides() -> None:
    (table,) = blocks("| a | b |\n|---|--:|\n| 1 | **2** |\n")
    assert isinstance(table, Table)
    assert [[cell[0].text for cell in row] for row in table.rows] == [["a", "b"], ["1", "2"]]
    assert table.right == (False, True)


def test_headings_and_rules() -> None:
    found = blocks("## b\n\n---\n\na\n=\n")
    assert [type(block) for block in found] == [Heading, Rule, Heading]
    assert [block.level for block in found if isinstance(block, Heading)] == [2, 1]


def test_html_is_text_and_never_markup() -> None:
    (found,) = blocks("<script>alert(1)</script>")
    assert isinstance(found, Paragraph) and found.runs[0].text == "<script>alert(1)</script>"


@pytest.mark.parametrize(
    "text",
    [
        ">" * 10_000 + " end",
        "- " * 1_000 + "end",
        "\n".join(" " * 2 * n + "- x" for n in range(60)) + " end",
        "[" * 100_000 + "end",
        "*a " * 50_000 + "end",
        "a" * 5_000_000 + "end",
        "a\n" * 300_000 + "end",
    ],
    ids=["quotes", "lists", "deep", "brackets", "stars", "line", "long"],
)
def test_what_is_too_much_to_read_is_shown_as_it_is(text: str) -> None:
    (found,) = blocks(text)
    assert isinstance(found, Plain) and found.text == text


def test_ten_thousand_lines_of_code_are_one_block() -> None:
    (code,) = blocks("```\n" + "x = 1\n" * 10_000 + "```")
    assert isinstance(code, Code) and code.text.count("\n") == 9_999


WORDS = ("a", "é", "字", "ا", " ", "\n", "\n\n", "    ", "\t", "\r\n", "&amp;", "<b>", "\\")
MARKS = ("*", "**", "_", "`", "```\n", "[x](y)", "> ", "- ", "1. ", "#", "~~", "|", "$", "$$")
PIECES = st.sampled_from([*WORDS, *MARKS, "\\(", "\\)"])


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_every_word_is_shown_and_stands_inside_its_block(text: str) -> None:
    shown: list[str] = []
    for block in blocks(text):
        assert 0 <= block.span.start <= block.span.stop <= len(text)
        match block:
            case Paragraph() | Heading():
                shown.extend(run.text for run in block.runs)
                for run in block.runs:
                    assert block.span.start <= run.span.start <= run.span.stop <= block.span.stop
            case Code() | Plain():
                shown.append(block.text)
            case Formula():
                shown.append(block.tex)
            case Table():
                shown.extend(run.text for row in block.rows for cell in row for run in cell)
            case Rule():
                pass
    letters = re.compile(r"[aé字ا]")
    written = letters.findall(re.sub(r"&amp;|(```|~~~)[^\n]*", "", text))
    # Words of a fence's first line are its language; nothing else is left out.
    assert len(letters.findall("".join(shown))) >= len(written)


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join), st.lists(PIECES, max_size=12).map("".join))
def test_text_that_follows_changes_only_the_last_group(text: str, more: str) -> None:
    before = groups_of(text)
    after = groups_of(text + more)
    done = before[:-1]
    assert [g.start for g in after[: len(done)]] == [g.start for g in done]


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_the_open_part_by_itself_reads_as_in_the_whole(text: str) -> None:
    groups = groups_of(text)
    if groups:
        start = groups[-1].start
        (*_, last) = groups_of(text[start:], start)
        assert last.start == start
        assert [type(b) for b in last.blocks] == [type(b) for b in groups[-1].blocks]


def test_runs_are_written_where_they_say() -> None:
    text = (
        "# Title *x*\n\nSome **bold** `code` [link](http://a.b/c) https://x.y/z\n\n- item *two*\n"
    )
    for run in every_run(text):
        assert text[run.span.start : run.span.stop] == run.text
