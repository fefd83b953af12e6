"""Makers' sampling completes a file that says nothing, and yields to one that does."""

from __future__ import annotations

import pytest

from engine.checkpoint.source import GenerationDefaults
from engine.models import FAMILIES
from engine.sampling.recommended import SMOLLM_MARKERS, completed
from tests.helpers.text import smol_facts


def test_a_silent_file_takes_its_makers_values_and_keeps_its_suppressed_ids() -> None:
    found = completed(GenerationDefaults(suppressed_ids=(7,)), "llama", (*SMOLLM_MARKERS, "a"))
    assert found == GenerationDefaults(0.0, 0, 0.9, 0.0, (7,))
    assert completed(GenerationDefaults(), "gemma3", ()).top_k == 64


def test_a_file_that_names_any_value_is_left_alone() -> None:
    named = GenerationDefaults(top_p=0.5)
    assert completed(named, "gemma3", ()) == named


@pytest.mark.parametrize(
    ("architecture", "temperature", "top_k", "top_p"),
    [
        ("gemma4", 1.0, 64, 0.95),
        ("gemma4_unified_text", 1.0, 64, 0.95),
        ("qwen35moe", 1.0, 20, 0.95),
        ("qwen3_5", 1.0, 20, 0.95),
        ("qwen3", 0.6, 20, 0.95),
        ("smollm3", 0.6, 0, 0.95),
    ],
)
def test_makers_values_are_those_of_their_cards(
    architecture: str, temperature: float, top_k: int, top_p: float
) -> None:
    found = completed(GenerationDefaults(), architecture, ())
    assert found == GenerationDefaults(temperature, top_k, top_p, 0.0)


def test_every_family_but_llama_has_makers_values() -> None:
    """Of llama there are too many makers to know whose file it is."""
    silent = {name for name in FAMILIES if completed(GenerationDefaults(), name, ()).top_p is None}
    assert silent == {"llama"}


def test_an_unknown_family_stays_silent() -> None:
    assert (
        completed(GenerationDefaults(), "llama", ("<unk>", "<s>", "</s>")) == GenerationDefaults()
    )


def test_a_vocabulary_that_begins_almost_like_a_known_one_is_not_it() -> None:
    """StarCoder's markers begin alike; a part of the list is not the list."""
    for tokens in (SMOLLM_MARKERS[:-1], ("<|endoftext|>", "<fim_prefix>", *SMOLLM_MARKERS[2:])):
        assert completed(GenerationDefaults(), "llama", tokens) == GenerationDefaults()


def test_the_starter_model_is_known_by_its_vocabulary() -> None:
    found = completed(GenerationDefaults(), "llama", smol_facts().tokens)
    assert found.temperature == 0.0
