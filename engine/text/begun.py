"""The beginning of a reply that goes on: which ids stand behind it. Pure.

Its own ids are taken where they were generated under the template that renders the prompt and say
what the app knows of it. Elsewhere its text is read anew, thinking tags around what was thought.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.protocol import ChatMessage, Region
from engine.text.stream import ReplyStream
from engine.text.template import Prompt
from engine.text.tokenizer import Tokenizer

HELD_BACK: Final = 64
"""So many letters may stand in a reply's last ids that were not yet certain to be its text."""


def begun_ids(begun: ChatMessage, prompt: Prompt, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids that follow the prompt before the reply goes on; none where nothing was said."""
    exact = _without_end(begun.ids, tokenizer)
    same_template = begun.template_hash is not None and begun.template_hash == prompt.template_hash
    if same_template and exact and _says(exact, begun, prompt, tokenizer):
        return exact
    return _read_anew(begun, prompt, tokenizer)


def _without_end(ids: Sequence[int], tokenizer: Tokenizer) -> tuple[int, ...]:
    count = len(ids)
    while count and ids[count - 1] in tokenizer.end_ids:
        count -= 1
    return tuple(ids[:count])


def _says(ids: Sequence[int], begun: ChatMessage, prompt: Prompt, tokenizer: Tokenizer) -> bool:
    """Whether the ids give the text that is known, and little more."""
    if not all(0 <= index < tokenizer.size for index in ids):
        return False
    stream = ReplyStream(tokenizer, tags=prompt.tags, starts_in_thinking=prompt.starts_in_thinking)
    said: dict[Region, str] = {"answer": "", "thinking": "", "tool": ""}
    pieces = [piece for index in ids for piece in stream.push(index)]
    for region, text in (*pieces, *stream.finish()):
        said[region] += text
    return _is_beginning(begun.text, said["answer"]) and _is_beginning(
        begun.thinking_text, said["thinking"]
    )


def _is_beginning(known: str, said: str) -> bool:
    return said.startswith(known) and len(said) - len(known) <= HELD_BACK


def _read_anew(begun: ChatMessage, prompt: Prompt, tokenizer: Tokenizer) -> tuple[int, ...]:
    found: list[int] = []

    def add(text: str, *, special: bool = False) -> None:
        found.extend(tokenizer.encode(text, special=special, continued=True))

    tags = prompt.tags
    if tags is not None and (prompt.starts_in_thinking or begun.thinking_text):
        if not prompt.starts_in_thinking:
            add(tags.opening, special=True)
        add(begun.thinking_text)
        if begun.text:
            add(f"{tags.closing}\n\n", special=True)
    add(begun.text)
    return tuple(found)
