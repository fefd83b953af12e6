"""The two real vocabularies give llama.cpp's own ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.text import gemma_tokenizer, smol_tokenizer

GOLDENS = Path(__file__).parents[1] / "data" / "tokenizer_goldens.json"


def goldens() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(GOLDENS.read_text("utf-8"))["cases"]
    return cases


@pytest.mark.parametrize("case", goldens(), ids=lambda case: ascii(case["text"][:20]))
def test_ids_are_those_of_llama_cpp(case: dict[str, Any]) -> None:
    """Markers read as text and as tokens; the two differ just where one is spelled."""
    for name, tokenizer in (("smol", smol_tokenizer()), ("gemma", gemma_tokenizer())):
        typed = tokenizer.encode(case["text"], special=False)
        special = tokenizer.encode(case["text"], special=True)
        assert typed == case[f"{name}_typed"]
        assert special == case[f"{name}_special"]
        assert tokenizer.decode(typed) == case["text"]
        assert (typed != special) == bool(list(tokenizer.markers.find(case["text"])))


def test_user_defined_tokens_match_in_typed_text_and_control_tokens_do_not() -> None:
    """The ids of a public report, measured with llama-tokenize."""
    tokenizer = gemma_tokenizer()
    typed = tokenizer.encode("a\n\nb   c <end_of_turn> <table>", special=False)
    head = [236746, 108, 236763, 139, 236755, 655]
    assert typed == [*head, 643, 236779, 1340, 236779, 887, 236813, 236743, 168]
    assert 106 not in typed
    assert 106 in tokenizer.encode("<end_of_turn>", special=True)


def test_special_ids_of_the_real_files() -> None:
    smol, gemma = smol_tokenizer(), gemma_tokenizer()
    assert (smol.bos_id, smol.eos_id, smol.add_bos) == (1, 2, False)
    assert 2 in smol.end_ids
    assert (gemma.bos_id, gemma.eos_id, gemma.add_bos) == (2, 1, True)
    assert set(gemma.end_ids) == {1, 106}
    assert smol.notes == gemma.notes == ()
