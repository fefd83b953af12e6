"""Makers' sampling completes a file that says nothing, and yields to one that does."""

from __future__ import annotations

from engine.checkpoint.source import GenerationDefaults
from engine.sampling.recommended import completed


def test_a_silent_file_takes_its_makers_values_and_keeps_its_suppressed_ids() -> None:
    found = completed(GenerationDefaults(suppressed_ids=(7,)), "llama", "smollm")
    assert found == GenerationDefaults(0.0, 0, 0.9, 0.0, (7,))
    assert completed(GenerationDefaults(), "gemma3", "default").top_k == 64


def test_a_file_that_names_any_value_is_left_alone() -> None:
    named = GenerationDefaults(top_p=0.5)
    assert completed(named, "gemma3", None) == named


def test_an_unknown_family_stays_silent() -> None:
    assert completed(GenerationDefaults(), "llama", "llama-bpe") == GenerationDefaults()
