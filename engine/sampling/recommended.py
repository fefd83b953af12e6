"""Sampling that a model's makers recommend, where its file says nothing. Pure.

Gemma 3 and 4: temperature 1.0, top-k 64, top-p 0.95. Qwen3.5: its generation_config. Qwen3 and
Qwen3-Next: their cards, the values for thinking, which their templates do unless told otherwise,
and in which greedy drawing is warned of. SmolLM3: its card. SmolLM2: its card says temperature 0.2
and top-p 0.9, but the 135M model in 4 bits, the starter, then begins a wrong answer to a plain
question nearly as often as the right one; greedy it answers. See decisions/0004.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from engine.checkpoint.source import GenerationDefaults

GEMMA: Final = GenerationDefaults(temperature=1.0, top_k=64, top_p=0.95, min_p=0.0)
QWEN3: Final = GenerationDefaults(temperature=0.6, top_k=20, top_p=0.95, min_p=0.0)
QWEN3_5: Final = GenerationDefaults(temperature=1.0, top_k=20, top_p=0.95, min_p=0.0)
SMOLLM2: Final = GenerationDefaults(temperature=0.0, top_k=0, top_p=0.9, min_p=0.0)
SMOLLM3: Final = GenerationDefaults(temperature=0.6, top_k=0, top_p=0.95, min_p=0.0)
BY_ARCHITECTURE: Final[Mapping[str, GenerationDefaults]] = MappingProxyType(
    {
        "gemma3": GEMMA,
        "gemma3_text": GEMMA,
        "gemma4": GEMMA,
        "gemma4_text": GEMMA,
        "gemma4_unified": GEMMA,
        "gemma4_unified_text": GEMMA,
        "qwen3": QWEN3,
        "qwen3_moe": QWEN3,
        "qwen3_next": QWEN3,
        "qwen3moe": QWEN3,
        "qwen3next": QWEN3,
        "qwen35": QWEN3_5,
        "qwen35moe": QWEN3_5,
        "qwen3_5": QWEN3_5,
        "qwen3_5_moe": QWEN3_5,
        "qwen3_5_moe_text": QWEN3_5,
        "qwen3_5_text": QWEN3_5,
        "smollm3": SMOLLM3,
    }
)
SMOLLM_MARKERS: Final = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>",
    "<filename>", "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>",
    "<jupyter_start>", "<jupyter_text>", "<jupyter_code>", "<jupyter_output>", "<jupyter_script>",
    "<empty_output>",
)  # fmt: skip
BY_MARKERS: Final = ((SMOLLM_MARKERS, SMOLLM2),)
"""First tokens of a vocabulary, by id, and whose they are."""


def completed(
    found: GenerationDefaults, architecture: str, tokens: Sequence[str]
) -> GenerationDefaults:
    """What the checkpoint says, completed by its makers' card where that is known.

    A file that names any value itself is left as it is.

    Args:
        tokens: the vocabulary by id.
    """
    named = (found.temperature, found.top_k, found.top_p, found.min_p)
    card = _by_markers(tokens) or BY_ARCHITECTURE.get(architecture)
    if card is None or any(value is not None for value in named):
        return found
    return replace(card, suppressed_ids=found.suppressed_ids)


def _by_markers(tokens: Sequence[str]) -> GenerationDefaults | None:
    return next((card for first, card in BY_MARKERS if tuple(tokens[: len(first)]) == first), None)
