"""Published tokenizers are data: what is understood is honoured, the rest is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Reference

from engine.errors import CheckpointUnreadable
from engine.text.tokenizer import Tokenizer
from tests.helpers.definitions import (
    Json,
    added,
    byte_definition,
    read_folder,
    space_definition,
    split,
)

QWEN: Json = {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
MERGES = (("a", "b"), ("ab", "c"), ("Ġ", "ab"))


def test_ids_are_those_of_the_file_read_by_tokenizers_itself(tmp_path: Path) -> None:
    for definition in (byte_definition(*MERGES), space_definition(("a", "b"), ("▁", "ab"))):
        tokenizer = Tokenizer(read_folder(tmp_path, definition))
        reference = Reference.from_str(json.dumps(definition))
        for text in (" abc ab é\n\n12 🙂", "a<|im_end|>b<think>c", "<eos> <bos>x", "e\u0301 \x00"):
            for special in (False, True):
                reference.encode_special_tokens = not special
                wanted = reference.encode(text, add_special_tokens=False).ids
                assert tokenizer.encode(text, special=special) == wanted


def test_special_flags_become_token_types(tmp_path: Path) -> None:
    """A person's <|im_end|> is text; <think>, which no flag calls special, is itself in both."""
    facts = read_folder(tmp_path, byte_definition(), QWEN)
    tokenizer = Tokenizer(facts)
    assert facts.token_types[256:] == (3, 3, 4)
    assert tokenizer.control_ids == {256, 257}
    assert tokenizer.encode("<|im_end|>", special=True) == [257]
    assert 257 not in tokenizer.encode("<|im_end|>", special=False)
    assert tokenizer.encode("<think>", special=False) == [258]
    assert tokenizer.find("<think>") == 258


def test_white_space_beside_a_marker_goes_with_it_where_the_file_says_so(tmp_path: Path) -> None:
    definition = byte_definition()
    definition["added_tokens"][1] |= {"lstrip": True, "rstrip": True}
    tokenizer = Tokenizer(read_folder(tmp_path, definition))
    assert tokenizer.encode("a <|im_end|>\n b", special=True) == [
        *tokenizer.encode("a", special=False),
        257,
        *tokenizer.encode("b", special=False),
    ]
    assert list(tokenizer.markers.find("a <|im_end|>\n b<|endoftext|> ")) == [
        (1, 14, 257),
        (15, 28, 256),
    ]


def test_the_ends_of_a_turn_are_the_union_of_all_files(tmp_path: Path) -> None:
    definition = byte_definition()
    definition["added_tokens"] += [added(259 + i, f"<end{i}>") for i in range(4)]
    facts = read_folder(
        tmp_path,
        definition,
        {"eos_token": {"content": "<end0>", "lstrip": False}},
        {"eos_token_id": 260, "text_config": {"eos_token_id": 261}},
        {"eos_token_id": [262, 256]},
    )
    assert facts.eos_id == 259
    assert facts.end_ids == (256, 257, 259, 260, 261, 262)


@pytest.mark.parametrize(
    ("settings", "config", "wanted"),
    [
        ({}, {}, (None, False)),
        ({"bos_token": "<bos>"}, {}, (2, True)),
        ({"bos_token": "<bos>", "add_bos_token": False}, {}, (2, False)),
        ({"bos_token": "<bos>", "add_bos_token": False}, {"model_type": "gemma4"}, (2, True)),
        ({"bos_token": "<pad>"}, {}, (0, False)),
        ({"bos_token": "<pad>", "add_bos_token": True}, {}, (0, True)),
        ({"bos_token": None}, {"bos_token_id": 2}, (None, False)),
        ({}, {"bos_token_id": 2}, (2, True)),
        ({}, {"text_config": {"bos_token_id": [2]}}, (2, True)),
    ],
)
def test_bos_is_what_the_files_say_together(
    tmp_path: Path, settings: Json, config: Json, wanted: tuple[int | None, bool]
) -> None:
    """The config of the tokenizer wins over that of the model, an explicit null too."""
    facts = read_folder(tmp_path, space_definition(), settings, config)
    assert (facts.bos_id, facts.add_bos) == wanted


def test_markers_of_the_config_join_those_of_the_file(tmp_path: Path) -> None:
    listed = {"300": {"content": "<late>", "special": True, "lstrip": True}}
    facts = read_folder(tmp_path, byte_definition(), {"added_tokens_decoder": listed})
    tokenizer = Tokenizer(facts)
    assert tokenizer.size == 301
    assert tokenizer.encode("a <late>", special=True)[-2:] == [ord("a") - 33, 300]
    assert tokenizer.hole_ids == frozenset(range(259, 300))


def test_ids_without_a_token_are_holes(tmp_path: Path) -> None:
    """A key that stands twice has the last id, as for every reader; the first is a hole."""
    content = json.dumps(byte_definition()).replace(
        '"vocab": {"!": 0', '"vocab": {"!": 0, "!": 299'
    )
    (tmp_path / "tokenizer.json").write_text(content, "utf-8")
    tokenizer = Tokenizer(read_folder(tmp_path, None))
    assert 0 in tokenizer.hole_ids
    assert tokenizer.encode("!", special=False) == [299]
    assert tokenizer.decode([0, 299]) == "!"


def test_a_space_before_a_text_is_put_only_where_nothing_stands_before_it(tmp_path: Path) -> None:
    definition = space_definition()
    replaced = definition["normalizer"]
    definition["normalizer"] = {
        "type": "Sequence",
        "normalizers": [{"type": "Prepend", "prepend": "▁"}, replaced],
    }
    tokenizer = Tokenizer(read_folder(tmp_path, definition))
    space, letter = tokenizer.encode("x", special=False)
    assert tokenizer.token_text(space) == "▁"
    assert tokenizer.encode("x", special=False, continued=True) == [letter]
    assert tokenizer.encode(" x", special=False, continued=True) == [space, letter]
    assert not tokenizer.prefix_once


@pytest.mark.parametrize(("scheme", "once"), [("first", True), ("always", False)])
def test_metaspace_says_whether_texts_after_markers_get_a_space(
    tmp_path: Path, scheme: str, once: bool
) -> None:
    definition = space_definition()
    definition["normalizer"] = None
    definition["pre_tokenizer"] = {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": scheme,
        "split": False,
    }
    tokenizer = Tokenizer(read_folder(tmp_path, definition))
    reference = Reference.from_str(json.dumps(definition))
    wanted = reference.encode("x<bos>y z", add_special_tokens=False).ids
    assert tokenizer.encode("x<bos>y z", special=True) == wanted
    assert tokenizer.prefix_once is once
    assert len(tokenizer.encode("x", special=False, continued=True)) == 1


def _in(*path: str | int, value: Any) -> Callable[[Json], None]:
    def change(definition: Json) -> None:
        place: Any = definition
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_in("model", "type", value="Unigram"), "model of type 'Unigram'; BPE is read"),
        (_in("model", value={"type": "WordPiece"}), "'WordPiece'"),
        (_in("model", "dropout", value=0.1), "has dropout '0.1'"),
        (_in("model", "end_of_word_suffix", value="</w>"), "end_of_word_suffix '</w>'"),
        (_in("model", "vocab", value=[]), "Expected `object`"),
        (_in("model", "vocab", value={}), "259"),
        (_in("model", "vocab", "a", value=-1), "token with id -1"),
        (_in("model", "vocab", "a", value=1 << 19), "token with id 524288"),
        (_in("model", "vocab", "a", value=1 << 90), "token with id 1237940039285380274899124224"),
        (_in("model", "vocab", "a", value="x"), "Expected `int`"),
        (_in("model", "vocab", "b", value=64), "gives id 64 to"),
        (_in("model", "merges", value=[["a"]]), "Expected `array` of length 2"),
        (_in("added_tokens", 0, "id", value=257), "gives id 257 to"),
        (_in("added_tokens", 0, "content", value="a"), "adds 'a' as 256, but its id is 64"),
        (_in("normalizer", value={"type": "Precompiled"}), "Invalid value 'Precompiled'"),
        (_in("pre_tokenizer", value={"type": "BertPreTokenizer"}), "'BertPreTokenizer'"),
        (_in("pre_tokenizer", value=None), "spells neither bytes nor spaces"),
        (_in("pre_tokenizer", "pretokenizers", 0, value=split("(a+)+$")), "repeats a group"),
        (_in("pre_tokenizer", "pretokenizers", 0, value=split(r"(a)\1")), "is not read"),
        (_in("pre_tokenizer", "pretokenizers", 0, value=split("", kind="String")), "neither or"),
        (
            _in("pre_tokenizer", "pretokenizers", 0, value=split("a") | {"behavior": "Removed"}),
            "drops text",
        ),
        (_in("post_processor", value=[1]), "post_processor that is not read"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(
    tmp_path: Path, change: Callable[[Json], None], sentence: str
) -> None:
    definition = byte_definition()
    change(definition)
    if sentence == "259":
        definition["added_tokens"] = []
        sentence = "has no tokens"
    with pytest.raises(CheckpointUnreadable) as caught:
        read_folder(tmp_path, definition)
    assert sentence in caught.value.sentence
    assert caught.value.sentence.startswith("tokenizer.json ")


def test_a_pattern_that_is_none_is_refused_when_it_is_built(tmp_path: Path) -> None:
    definition = byte_definition()
    definition["pre_tokenizer"]["pretokenizers"][0] = split(r"\p{Nonsense}+")
    with pytest.raises(CheckpointUnreadable, match="cannot be built"):
        Tokenizer(read_folder(tmp_path, definition))


@pytest.mark.parametrize(
    ("settings", "config", "generation", "sentence"),
    [
        ({"eos_token": "<none>"}, {}, {}, "names '<none>' as eos_token"),
        ({"eos_token": 3}, {}, {}, "tokenizer_config.json is not read"),
        ({}, {"eos_token_id": -2}, {}, "config.json has -2 as eos_token_id"),
        ({}, {}, {"eos_token_id": [1 << 40]}, "generation_config.json has 1099511627776"),
        ({}, {"eos_token_id": "x"}, {}, "has the text 'x' as eos_token_id"),
        ({}, {"bos_token_id": True}, {}, "has true as bos_token_id"),
        ({"added_tokens_decoder": {"x": {"content": "a"}}}, {}, {}, "with the id 'x'"),
        ({"added_tokens_decoder": {"9999999": {"content": "a"}}}, {}, {}, "out of bounds"),
        ({"added_tokens_decoder": {"5": {"content": "zz"}}}, {}, {}, "gets 'zz' as id 5"),
        ({"added_tokens_decoder": {"5": {"content": "a"}}}, {}, {}, "that token as 64"),
        ({"added_tokens_decoder": {"5": {}}}, {}, {}, "missing required field"),
    ],
)
def test_special_tokens_that_do_not_fit_are_refused_by_their_file(
    tmp_path: Path, settings: Json, config: Json, generation: Json, sentence: str
) -> None:
    with pytest.raises(CheckpointUnreadable) as caught:
        read_folder(tmp_path, byte_definition(), settings, config, generation)
    assert sentence in caught.value.sentence


def test_ids_of_the_embeddings_padding_end_no_turn(tmp_path: Path) -> None:
    facts = read_folder(tmp_path, byte_definition(), {}, {"eos_token_id": [256, 400]})
    assert 400 not in facts.end_ids
    assert facts.eos_id == 256


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"[" * 100_000, b'{"model": {"vocab": {"\xff": 1}, "merges": []}}'],
    ids=["empty", "list", "cut", "deep", "no text"],
)
def test_what_is_no_definition_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(CheckpointUnreadable, match=r"tokenizer\.json"):
        read_folder(tmp_path, None)


def test_a_definition_of_endless_values_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b'{"x": [' + b"0," * 4_000_001 + b"0]}")
    with pytest.raises(CheckpointUnreadable, match="more than 4000000 values"):
        read_folder(tmp_path, None)


def test_a_folder_without_a_tokenizer_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CheckpointUnreadable, match=r"tokenizer\.json is missing, and so are"):
        read_folder(tmp_path, None)


def test_numbers_without_end_in_the_config_are_passed_over(tmp_path: Path) -> None:
    facts = read_folder(tmp_path, byte_definition(), QWEN | {"model_max_length": 10**30})
    assert facts.eos_id == 257
