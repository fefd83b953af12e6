"""Older tokenizer files: vocab.json with merges.txt, and SentencePiece's tokenizer.model."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.checkpoint.published.json_text import Json, json_refusal
from engine.checkpoint.published.tokenizer import published_tokenizer
from engine.checkpoint.vocabulary.pattern import PATTERN_LIMIT, pattern_problem
from engine.checkpoint.vocabulary.sentencepiece import read_sentencepiece
from engine.checkpoint.vocabulary.table import Vocabulary
from engine.errors import CheckpointUnreadable
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary.pieces import byte_table
from engine.text.vocabulary.rules import find_rule

PIECES = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
PIECES += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
PIECES += [("▁a", -1.0, 1), ("▁", -2.0, 1), ("a", -3.0, 1)]


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def piece(text: str, score: float, kind: int) -> bytes:
    inner = field(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score)
    return field(1, inner + (field(3, kind) if kind != 1 else b""))


def model(kind: int = 2, prefix: int = 0, charsmap: bytes = b"") -> bytes:
    trainer = field(3, kind) + field(40, 0) + field(2, b"prefix") + field(99, 7)
    normalizer = field(1, b"identity") + field(2, charsmap) + field(3, prefix)
    rows = b"".join(piece(*one) for one in PIECES)
    return rows + field(2, trainer) + field(3, normalizer) + field(4, b"self-test")


def read(content: bytes) -> Vocabulary:
    return read_sentencepiece(content, lambda sentence: json_refusal("tokenizer.model", sentence))


def test_a_sentencepiece_file_gives_pieces_types_scores_and_its_space_prefix() -> None:
    found = read(model(prefix=1))
    assert (found.model, found.unknown_id, found.add_space_prefix) == ("llama", 0, True)
    assert list(zip(found.tokens, found.scores, found.token_types, strict=True)) == PIECES
    assert read(model()).add_space_prefix is False


def test_a_folder_with_a_sentencepiece_file_reads_text(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(model())
    (tmp_path / "added_tokens.json").write_text('{"<extra>": 270}')
    facts = published_tokenizer(tmp_path, {"bos_token_id": 1, "eos_token_id": 2}, {})
    tokenizer = Tokenizer(facts)
    assert (facts.bos_id, facts.eos_id, facts.end_ids, facts.add_bos) == (1, 2, (2,), True)
    assert tokenizer.encode("a a</s>é", special=False)[:2] == [261, 259]
    assert tokenizer.encode(" a<extra></s>", special=True) == [259, 270, 2]
    assert tokenizer.hole_ids == frozenset(range(262, 270))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (model(kind=1), "SentencePiece's kind 1; its BPE"),
        (model(charsmap=b"x"), "maps characters"),
        (field(4, b""), "has no pieces"),
        (model()[:-3], "a field of 9 bytes where 6 are left"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "is damaged: a field of"),
        (b"\xff" * 20, "a number without an end"),
        (b"\x0b\x00", "a field of kind 3"),
        (piece("a", 0.0, 9), "piece 0 has type 9"),
        (field(1, field(1, b"\xff")), "piece 0 is no text"),
        (piece("<0x1>", 0.0, 6) + field(2, field(3, 2)), "has '<0x1>' as byte 0"),
    ],
)
def test_a_damaged_sentencepiece_file_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(CheckpointUnreadable) as caught:
        read(content)
    assert sentence in caught.value.sentence


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_cut_or_flipped_sentencepiece_file_raises_anything_else(data: st.DataObject) -> None:
    content = bytearray(model()[-60:] if data.draw(st.booleans()) else model()[:80])
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(bytes(content[: data.draw(st.integers(0, len(content)))]))
    except CheckpointUnreadable as error:
        assert error.sentence.startswith("tokenizer.model ")


def write_pairs(folder: Path, merges: str, added: str = "{}") -> None:
    tokens = [*byte_table(), "ab", "Ġab"]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    (folder / "merges.txt").write_text(merges, "utf-8")
    (folder / "added_tokens.json").write_text(added, "utf-8")


@pytest.mark.parametrize(
    ("family", "rule"),
    [("qwen2", "qwen2"), ("qwen3", "qwen2"), ("qwen3_5_moe", "qwen35"), ("llama", None)],
)
def test_vocabulary_and_merges_read_as_the_family_cuts_text(
    tmp_path: Path, family: str, rule: str | None
) -> None:
    write_pairs(tmp_path, "#version: 0.2\na b\r\nĠ ab\n", '{"<|im_end|>": 258}')
    config: dict[str, Json] = {"model_type": family, "eos_token_id": 258}
    facts = published_tokenizer(tmp_path, config, {})
    tokenizer = Tokenizer(facts)
    assert facts.pre == rule
    assert tokenizer.encode(" abab", special=False) == [257, 256]
    assert tokenizer.encode("ab<|im_end|>", special=True) == [256, 258]
    assert (tokenizer.notes == ()) is (rule is not None)


def test_markers_of_the_older_list_are_control_tokens_by_their_spelling(tmp_path: Path) -> None:
    write_pairs(tmp_path, "a b\n", '{"<|im_start|>": 258, "<think>": 259}')
    tokenizer = Tokenizer(published_tokenizer(tmp_path, {"model_type": "qwen2"}, {}))
    assert tokenizer.control_ids == {258}
    assert tokenizer.encode("<think>", special=False) == [259]
    assert 258 not in tokenizer.encode("<|im_start|>", special=False)


@pytest.mark.parametrize("merges", ["a b c\n", "ab\n", "a  b\n"])
def test_a_line_of_merges_that_is_no_pair_is_refused(tmp_path: Path, merges: str) -> None:
    write_pairs(tmp_path, merges)
    with pytest.raises(CheckpointUnreadable, match="which is no pair"):
        published_tokenizer(tmp_path, {}, {})


def test_a_vocabulary_without_its_merges_is_no_tokenizer(tmp_path: Path) -> None:
    write_pairs(tmp_path, "")
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(CheckpointUnreadable, match="no tokenizer"):
        published_tokenizer(tmp_path, {}, {})


@pytest.mark.parametrize(
    "name",
    [
        *("smollm", "gpt-2", "llama-bpe", "qwen2", "qwen35", "deepseek-llm", "deepseek-coder"),
        *("deepseek-v3", "tekken", "gpt-4o", "falcon", "bailingmoe", "seed-coder"),
    ],
)
def test_patterns_of_real_models_are_read(name: str) -> None:
    assert [pattern_problem(pattern) for pattern in find_rule(name)[0].patterns if pattern] == [
        None for _ in find_rule(name)[0].patterns
    ]


@pytest.mark.parametrize(
    "pattern",
    [
        *("(a+)+$", "(a|a)*b", "(?:a*){2,}", "(a?){30}", "((a)+)+", "(a+)?+(b+)+"),
        *("a*a*b", r"[^b]*[^c]*(?!a)\s", "a*(?:a+b)", "a?" * 4 + "b", "a*a*(b)c?"),
        *("a*a*a*b", "a*(b|a*(c|a*))", "a?" * 9, "a{1,9}a{1,9}a{1,9}", "a{9}{9}", "a**"),
        *(r"(a)\1", r"\k<n>", r"(?<n>a)\g<n>", "(?#c)", "(?>a)", "(", ")", "a)(", "[a", "+a"),
        "a" * (PATTERN_LIMIT + 1),
    ],
)
def test_a_pattern_that_could_take_for_ever_is_not_run(pattern: str) -> None:
    assert pattern_problem(pattern) is not None


@pytest.mark.parametrize(
    "pattern",
    ["a*b*", "a*b*c?", "a+b*(?:c|d)?", "a*b|a*b*", r"\p{L}?\p{L}+[\r\n]*", "a*b", "(a|b)"],
)
def test_what_a_place_in_the_text_decides_soon_is_run(pattern: str) -> None:
    assert pattern_problem(pattern) is None
