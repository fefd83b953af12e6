"""Cases that others got wrong: every template of a collection, tools and thinking included."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from engine.errors import TemplateFailed
from engine.protocol import ChatMessage, Tool
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from tests.gates.test_prefixes import CONTROL
from tests.helpers.models import llama_cpp_path
from tests.helpers.text import DeskRenderer, byte_facts

DATE = "2031-05-17"
TOOL = Tool(
    name="get_weather",
    description="Weather of a city",
    parameters='{"type": "object", "properties": {"city": {"type": "string", "description": ""}}}',
)
TURNS = {
    "system": ChatMessage(role="system", text="Answer in French."),
    "first": ChatMessage(role="user", text="What does <b> do?"),
    "reply": ChatMessage(role="assistant", text="It closes."),
    "second": ChatMessage(role="user", text="And None?"),
}
CONVERSATIONS = (("first",), ("system", "first"), ("first", "reply", "second"))
UNRENDERED = {"fireworks-ai-llama-3-firefunction-v2.jinja": "'functions' is undefined"}
"""Templates that want a name that no chat program gives, and the reason in the sentence."""


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer(byte_facts(control=CONTROL))


def templates() -> list[Path]:
    return sorted((llama_cpp_path() / "models" / "templates").glob("*.jinja"))


def test_the_whole_collection_is_there() -> None:
    assert len(templates()) >= 70


@pytest.mark.parametrize("path", templates(), ids=lambda path: path.stem)
def test_a_template_shows_every_message_and_tool_or_says_that_it_does_not(path: Path) -> None:
    source = path.read_text("utf-8")
    with ChatTemplate(source, tokenizer(), DeskRenderer(source)) as template:
        if path.name in UNRENDERED:
            with pytest.raises(TemplateFailed, match=UNRENDERED[path.name]) as caught:
                template.prompt([TURNS["first"]], date=DATE)
            assert "\n" not in caught.value.sentence
            return
        for names in CONVERSATIONS:
            messages = [TURNS[name] for name in names]
            found = template.prompt(messages, date=DATE)
            assert [one.text for one in messages if one.text not in found.text] == []
            assert "None" not in found.text.replace("And None?", "") or "None" in source
            assert all(year not in found.text or year in source for year in ("2024", "2026"))
        found = template.prompt([TURNS["first"]], date=DATE, tools=(TOOL,), thinking=False)
        assert TURNS["first"].text in found.text
        told = any("shows no tools" in note for note in found.notes)
        assert told != (TOOL.name in found.text)
        switched = any("cannot turn thinking" in note for note in found.notes)
        assert switched != template.can_think


def test_tools_that_are_shown_leave_no_note() -> None:
    """Control: the note above is about this template and these tools, not about any."""
    path = llama_cpp_path() / "models" / "templates" / "Qwen-Qwen3-0.6B.jinja"
    source = path.read_text("utf-8")
    with ChatTemplate(source, tokenizer(), DeskRenderer(source)) as template:
        assert template.prompt([TURNS["first"]], tools=(TOOL,)).notes == ()
        on = template.prompt([TURNS["first"]], thinking=True).text
        off = template.prompt([TURNS["first"]], thinking=False).text
        assert on != off
