"""Which tokens end a turn because of how they are spelled. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.checkpoint.vocabulary.table import CONTROL

_TEXTS: Final = frozenset(
    {
        "<|im_end|>", "<|endoftext|>", "<end_of_turn>", "<eos>", "<turn|>", "<|tool_response>",
        "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "</s>",
    }
)  # fmt: skip


def spelled_ends(tokens: Sequence[str], types: Sequence[int]) -> set[int]:
    """Ids whose text is known to end a turn.

    ``</s>`` is an HTML tag in some vocabularies and counts only as a control token, and not at all
    where the family has ``<|tool_response>``.
    """
    spelled = {text: index for index, text in enumerate(tokens) if text in _TEXTS}
    strike = spelled.get("</s>")
    if strike is not None and (types[strike] != CONTROL or "<|tool_response>" in spelled):
        del spelled["</s>"]
    return set(spelled.values())
