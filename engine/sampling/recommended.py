"""Sampling that a model's makers recommend, where its file says nothing. Pure.

Gemma 3: its model card (temperature 1.0, top-k 64, top-p 0.95). SmolLM2: its card says temperature
0.2 and top-p 0.9, but the 135M model in 4 bits, the starter, then begins a wrong answer to a plain
question nearly as often as the right one; greedy it answers. See decisions/0004.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from engine.checkpoint.source import GenerationDefaults

BY_ARCHITECTURE: Final[Mapping[str, GenerationDefaults]] = MappingProxyType(
    {"gemma3": GenerationDefaults(temperature=1.0, top_k=64, top_p=0.95, min_p=0.0)}
)
BY_TOKENIZER: Final[Mapping[str, GenerationDefaults]] = MappingProxyType(
    {"smollm": GenerationDefaults(temperature=0.0, top_k=0, top_p=0.9, min_p=0.0)}
)


def completed(found: GenerationDefaults, architecture: str, pre: str | None) -> GenerationDefaults:
    """What the checkpoint says, completed by its makers' card where that is known.

    A file that names any value itself is left as it is.

    Args:
        pre: the file's pre-tokenizer rule, which tells families of one architecture apart.
    """
    named = (found.temperature, found.top_k, found.top_p, found.min_p)
    card = BY_TOKENIZER.get(pre or "") or BY_ARCHITECTURE.get(architecture)
    if card is None or any(value is not None for value in named):
        return found
    return replace(card, suppressed_ids=found.suppressed_ids)
