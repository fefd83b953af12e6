"""The table in resources/docs/prefixes.md says of each template what rendering it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.protocol import ChatMessage
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from tests.helpers.models import llama_cpp_path
from tests.helpers.text import DeskRenderer, byte_facts, smol_template

TABLE = Path(__file__).parents[2] / "resources" / "docs" / "prefixes.md"
THINKING = {"-": None, "as it comes": None, "on": True, "off": False}
CONTROL = [
    "<bos>",
    "<eos>",
    "<|im_start|>",
    "<|im_end|>",
    "<|turn>",
    "<turn|>",
    "<|channel>",
    "<channel|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|begin_of_text|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<tool_response|>",
    '<|"|>',
]
ESCAPED = "\ue000"


def rows() -> list[list[str]]:
    lines = TABLE.read_text("utf-8").replace("\\|", ESCAPED).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    return [[cell.replace(ESCAPED, "|") for cell in row] for row in cells[2:]]


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", text=text)


def template_source(name: str) -> str:
    if name == "starter model":
        return smol_template()
    return (llama_cpp_path() / "models" / "templates" / name).read_text("utf-8")


def test_every_family_of_the_table_is_there() -> None:
    families = {row[0] for row in rows()}
    assert {"SmolLM2", "llama 3.1", "qwen3", "qwen3_5", "gemma 2, 3", "gemma4"} <= families


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]} {row[2]}")
def test_a_template_keeps_what_the_table_says(row: list[str]) -> None:
    _, name, thinking, keeps, lost, tools = row
    tokenizer = Tokenizer(byte_facts(control=CONTROL))
    source = template_source(name)
    answered = ChatMessage(role="assistant", text="yes", thinking_text="I think so")
    first = [user("hi")]
    second = [*first, answered, user("why?")]
    with ChatTemplate(source, tokenizer, DeskRenderer(source)) as template:
        switch = THINKING[thinking]
        before = template.prompt(first, date="2026-11-30", thinking=switch)
        after = template.prompt(second, date="2026-11-30", thinking=switch)
        assert template.can_think is (thinking != "-")
        syntax = template.tool_syntax
    shared = before.history_end
    assert shared is not None
    assert after.ids[:shared] == before.ids[:shared]
    assert before.keeps_prefix is (keeps == "yes")
    assert (after.rewritten_from is None) is (keeps == "yes")
    if keeps == "yes":
        assert after.ids[: len(before.ids)] == before.ids
    else:
        assert after.ids[shared] != before.ids[shared]
        rest = tokenizer.decode(before.ids[shared:], skip_control=False)
        assert rest == lost.strip("`").replace("\\n", "\n")
    assert tools == ("-" if syntax is None else f"`{syntax.opening}`")
