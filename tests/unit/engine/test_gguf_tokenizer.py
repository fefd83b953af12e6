"""Tokenizer data: bounded tables, ids inside the vocabulary, and every way a turn can end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.checkpoint.gguf.header import parse_header
from engine.checkpoint.gguf.tokenizer import generation_defaults, tokenizer_facts
from engine.checkpoint.source import GenerationDefaults, TokenizerFacts
from engine.errors import CheckpointUnreadable
from tests.fuzz.small_headers import small_images
from tests.helpers.gguf_edit import BOOL, F32, I32, STRING, U8, Image, array, scalar, string, u32

PREFIX = "tokenizer.ggml."
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4


def _image(kind: str, **words: int) -> Image:
    """A vocabulary of the given words and token types."""
    image = small_images()[1 if kind == "gpt2" else 2]
    image.set(PREFIX + "tokens", array(STRING, list(words)))
    image.set(PREFIX + "token_type", array(I32, list(words.values())))
    if kind == "llama":
        image.set(PREFIX + "scores", array(F32, [0.0] * len(words)))
    image.remove(PREFIX + "eos_token_id")
    return image


def _facts(image: Image) -> TokenizerFacts:
    return tokenizer_facts(parse_header(image.to_bytes(), "x.gguf").metadata, "x.gguf")


def _ends(image: Image) -> list[str]:
    facts = _facts(image)
    return [facts.tokens[i] for i in facts.end_ids]


def test_every_id_that_a_key_names_ends_a_turn() -> None:
    image = _image("gpt2", a=1, b=1, c=1, d=1)
    for number, key in enumerate(("eos", "eot", "eom")):
        image.set(f"{PREFIX}{key}_token_id", u32(number))
    assert _ends(image) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "word",
    [
        "<|im_end|>", "<|endoftext|>", "<end_of_turn>", "<eos>", "<turn|>", "<|tool_response>",
        "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "</s>",
    ],
)  # fmt: skip
def test_words_that_end_a_turn_are_known_by_their_text(word: str) -> None:
    assert _ends(_image("gpt2", **{"a": NORMAL, word: CONTROL, "<|im_start|>": CONTROL})) == [word]


def test_the_strike_tag_ends_a_turn_only_as_a_control_token_outside_gemma_4() -> None:
    tag = {"a": NORMAL, "</s>": CONTROL}
    assert _ends(_image("gpt2", **tag)) == ["</s>"]
    assert _ends(_image("gpt2", **{**tag, "</s>": USER_DEFINED})) == []
    gemma4 = {**tag, "<|tool_response>": CONTROL}
    assert _ends(_image("gpt2", **gemma4)) == ["<|tool_response>"]


def test_spm_files_without_special_ids_have_the_usual_ones_and_byte_level_ones_none() -> None:
    silent = _image("llama", **{"<unk>": 2, "<s>": 3, "x": 3, "y": 1})
    silent.remove(PREFIX + "add_bos_token")
    spm = _facts(silent)
    assert (spm.unknown_id, spm.bos_id, spm.eos_id, spm.padding_id) == (0, 1, 2, None)
    assert spm.end_ids == (2,)
    assert (spm.add_bos, spm.add_space_prefix) == (True, True)
    bpe = _facts(_image("gpt2", a=1, b=1))
    assert (bpe.unknown_id, bpe.bos_id, bpe.eos_id) == (None, None, None)
    assert bpe.end_ids == ()


@pytest.mark.parametrize(("pre", "wanted"), [("llama-bpe", True), ("smollm", False)])
def test_bos_is_added_by_rule_where_the_file_does_not_say(pre: str, wanted: bool) -> None:
    image = _image("gpt2", a=1)
    image.remove(PREFIX + "add_bos_token")
    image.set(PREFIX + "pre", string(pre))
    assert _facts(image).add_bos is wanted
    image.set(PREFIX + "add_bos_token", scalar(BOOL, not wanted))
    assert _facts(image).add_bos is not wanted


@pytest.mark.parametrize("said", [True, False, None])
def test_gemma_4_always_begins_with_bos_and_names_its_own_rule(said: bool | None) -> None:
    image = _image("gpt2", **{"<bos>": CONTROL, "a": NORMAL, "<0x0A>": 6})
    image.set(PREFIX + "model", string("gemma4"))
    image.remove(PREFIX + "pre")
    image.remove(PREFIX + "add_bos_token")
    if said is not None:
        image.set(PREFIX + "add_bos_token", scalar(BOOL, said))
    facts = _facts(image)
    assert (facts.model, facts.pre, facts.add_bos, facts.scores) == ("gemma4", "gemma4", True, ())
    image.remove(PREFIX + "merges")
    with pytest.raises(CheckpointUnreadable, match="merges is missing"):
        _facts(image)


@pytest.mark.parametrize("value", [scalar(I32, -1), u32(2**32 - 1)])
def test_minus_one_means_no_such_token(value: bytes) -> None:
    image = _image("gpt2", a=1)
    image.set(PREFIX + "padding_token_id", value)
    assert _facts(image).padding_id is None


def test_a_file_without_token_types_has_normal_tokens() -> None:
    image = _image("gpt2", a=1, b=3)
    image.remove(PREFIX + "token_type")
    assert _facts(image).token_types == (1, 1)


def _set(key: str, value: bytes) -> Callable[[Image], None]:
    return lambda image: image.set(PREFIX + key, value)


def _without(key: str) -> Callable[[Image], None]:
    return lambda image: image.remove(PREFIX + key)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_without("model"), "model is missing"),
        (_set("model", string("bert")), "'bert'; tokenizers 'gpt2', 'llama' and 'gemma4' are read"),
        (_set("model", u32(1)), "model must be a string"),
        (_without("tokens"), "no vocabulary"),
        (_set("tokens", array(STRING, [])), "no vocabulary"),
        (_set("tokens", array(U8, [1])), "must be an array of strings"),
        (_set("tokens", string("a")), "must be an array of strings"),
        (_set("tokens", array(STRING, ["a"] * (2**19 + 1))), "at most 524288"),
        (_set("token_type", array(I32, [1])), "has 1 entries for 4 tokens"),
        (_set("token_type", array(F32, [1.0] * 4)), "array of whole numbers"),
        (_without("merges"), "merges is missing"),
        (_set("pre", u32(1)), "pre must be a string"),
        (_set("bos_token_id", u32(4)), "is 4, past a vocabulary of 4"),
        (_set("bos_token_id", scalar(F32, 1.0)), "must be a whole number"),
        (_set("bos_token_id", scalar(BOOL, 1)), "must be a whole number"),
        (_set("eot_token_id", u32(2**31)), "past a vocabulary"),
        (_set("add_bos_token", u32(1)), "must be a truth value"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_by_its_key(
    change: Callable[[Image], None], sentence: str
) -> None:
    image = small_images()[1]
    change(image)
    with pytest.raises(CheckpointUnreadable) as caught:
        _facts(image)
    assert sentence in caught.value.sentence
    assert caught.value.sentence.startswith(f"x.gguf: {PREFIX}")


@pytest.mark.parametrize("word", ["<0x-1>", "<0x100>", "<0xG0>", "41", "<0x41>x"])
def test_a_byte_token_that_spells_no_byte_is_refused(word: str) -> None:
    image = _image("llama", **{"<unk>": 2, word: 6})
    with pytest.raises(CheckpointUnreadable, match="as byte token 1"):
        _facts(image)
    assert _facts(_image("llama", **{"<unk>": 2, "<0x41>": 6})).token_types[1] == 6


def test_scores_must_be_one_a_token() -> None:
    image = small_images()[2]
    image.set(PREFIX + "scores", array(F32, [0.0]))
    with pytest.raises(CheckpointUnreadable, match="scores has 1 entries for 5 tokens"):
        _facts(image)


def _defaults(image: Image) -> GenerationDefaults:
    return generation_defaults(parse_header(image.to_bytes(), "x.gguf").metadata, "x.gguf")


def test_sampling_values_and_suppressed_ids_of_a_file_are_given_and_others_are_absent() -> None:
    image = small_images()[1]
    image.set("general.sampling.temp", scalar(F32, 0.5))
    image.set("general.sampling.top_k", scalar(I32, 64))
    image.set("general.sampling.min_p", scalar(F32, float("nan")))
    image.set("general.sampling.top_p", string("0.9"))
    image.set(PREFIX + "suppress_tokens", array(I32, [3, -1, 1, 4, 2**31 - 1]))
    assert _defaults(image) == GenerationDefaults(temperature=0.5, top_k=64, suppressed_ids=(3, 1))


def test_a_file_that_recommends_nothing_gives_nothing() -> None:
    assert _defaults(small_images()[0]) == GenerationDefaults()
