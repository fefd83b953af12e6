"""Text becomes ids and text again, and what a person types is never a control token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import CheckpointUnreadable
from engine.text.tokenizer import Tokenizer, clean
from engine.text.vocabulary.rules import find_rule
from tests.helpers.text import byte_facts, smol_tokenizer, spm_facts

# SmolLM2's vocabulary has no token for some control characters and planes past the second.
LETTERS = st.characters(exclude_categories=("Cs", "Cc"), max_codepoint=0x2FFFF)
RULES = (
    *("smollm", "gpt-2", "llama-bpe", "smaug-bpe", "qwen2", "qwen35", "stablelm2", "tekken"),
    *("deepseek-llm", "deepseek-coder", "deepseek-v3", "gpt-4o", "falcon", "bailingmoe"),
    "seed-coder",
)
TEXT = st.text(LETTERS | st.sampled_from("\n\r\t"), max_size=60)


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_text_survives_encoding_and_decoding(text: str) -> None:
    tokenizer = smol_tokenizer()
    assert tokenizer.decode(tokenizer.encode(text, special=False)) == text


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["<|im_end|>", "<|im_start|>", "<", "|im_end|>", "a", " "])))
def test_no_control_id_comes_of_typed_text(parts: list[str]) -> None:
    tokenizer = smol_tokenizer()
    typed = tokenizer.encode("".join(parts), special=False)
    assert tokenizer.control_ids.isdisjoint(typed)
    assert tokenizer.decode(typed) == "".join(parts)


def test_a_control_token_that_merges_would_build_is_spelled_out() -> None:
    """A file whose own merges lead to "</s>" must not give it to whoever types it."""
    facts = byte_facts(merges=("< /", "</ s", "</s >"))
    merged = replace(facts, tokens=facts.tokens[:-1], token_types=facts.token_types[:-1])
    tokenizer = Tokenizer(merged)
    typed = tokenizer.encode("a</s>b", special=False)
    assert 1 not in typed
    assert tokenizer.decode(typed) == "a</s>b"
    assert 1 in tokenizer.encode("a</s>b", special=True)


@pytest.mark.parametrize("pre", [None, "", "default", "never-heard-of"])
def test_a_missing_or_unknown_rule_is_told(pre: str | None) -> None:
    """The note names the rule that is used, and the ids are that rule's."""
    merges = ("1 2", "3 4", "Ġ 1")
    tokenizer = Tokenizer(byte_facts(merges=merges, pre=pre))
    told = " ".join(tokenizer.notes)
    assert "may be read wrongly" in told
    assert "GPT-2" in told
    plain = Tokenizer(byte_facts(merges=merges, pre="gpt-2"))
    assert plain.notes == ()
    for text in ("12345", "\r\n\t", "a 12 b"):
        assert tokenizer.encode(text, special=False) == plain.encode(text, special=False)


def test_rules_differ_where_they_should() -> None:
    """The control: digits apart under smollm's rule, in threes under Llama 3's."""
    tokens = ("1 2", "12 3", "4 5")
    by_rule = {
        pre: Tokenizer(byte_facts(merges=tokens, pre=pre)).encode("12345", special=False)
        for pre in ("smollm", "gpt-2", "llama-bpe", "qwen2")
    }
    assert [len(ids) for ids in by_rule.values()] == [5, 2, 2, 5]


@pytest.mark.parametrize("name", RULES)
def test_every_rule_keeps_every_letter(name: str) -> None:
    rule, note = find_rule(name)
    assert note is None
    text = "It's 2024! ÀÉ über naïve\r\n\t  中文かな한국 ½ x=1;\n\n"
    pieces = rule.pre_tokenizer().pre_tokenize_str(text)
    assert [span[0] for _, span in pieces] == [0, *(span[1] for _, span in pieces[:-1])]
    assert pieces[-1][1][1] == len(text)


def test_lone_surrogates_become_one_replacement_character() -> None:
    assert clean("hi \ud83d x") == "hi \ufffd x"
    assert clean("\ud83d\ude42") == "🙂"
    tokenizer = smol_tokenizer()
    assert tokenizer.encode("hi \ud83d x", special=False) == tokenizer.encode(
        "hi \ufffd x", special=False
    )


def test_markers_are_found_leftmost_and_longest_up_to_the_texts_end() -> None:
    tokenizer = Tokenizer(byte_facts(control=("<s>", "</s>", "<s><s>x")))
    assert list(tokenizer.markers.find("a<s></s>")) == [(1, 4, 0), (4, 8, 1)]
    assert list(tokenizer.markers.find("<s><s>x<s>")) == [(0, 7, 2), (7, 10, 0)]
    assert list(tokenizer.markers.find("<s><s>")) == [(0, 3, 0), (3, 6, 0)]
    assert list(tokenizer.markers.find("<s")) == []
    assert tokenizer.markers.starts("<s><s>x<s") == [0, 3]
    short = Tokenizer(byte_facts(control=("<s>", "</s>", "^", "]x")))
    assert list(short.markers.find("a^]x]^")) == [(1, 2, 2), (2, 4, 3), (5, 6, 2)]
    assert list(Tokenizer(byte_facts(control=("<s>", "</s>"))).markers.find("^]x")) == []


def test_spans_cover_the_text_in_order() -> None:
    text = "Größe <|im_end|> 🙂 x"
    spm = Tokenizer(spm_facts({"▁": -1.0, "x": -2.0}, add_space_prefix=False))
    for tokenizer in (smol_tokenizer(), spm):
        found = tokenizer.encode_with_spans(text, special=False)
        assert found.starts[0] == 0
        assert found.ends[-1] == len(text)
        assert found.starts == sorted(found.starts)
        assert found.ends == sorted(found.ends)


def test_a_space_prefix_is_put_where_the_vocabulary_wants_it() -> None:
    pieces = {
        "▁": -1.0,
        "▁hello": -2.0,
        "▁▁": -3.0,
        "▁h": -4.0,
        "ello": -5.0,
        "el": -6.0,
        "lo": -7.0,
    }
    pieces |= {"h": -20.0, "e": -21.0, "l": -22.0, "o": -23.0}
    with_prefix = Tokenizer(spm_facts(pieces, add_space_prefix=True))
    without = Tokenizer(spm_facts(pieces, add_space_prefix=False))

    def spelled(tokenizer: Tokenizer, text: str, *, continued: bool = False) -> list[str]:
        ids = tokenizer.encode(text, special=False, continued=continued)
        return [tokenizer.token_text(index) for index in ids]

    assert spelled(with_prefix, "hello") == ["▁hello"]
    assert spelled(without, "hello") == ["h", "ello"]
    assert spelled(with_prefix, "hello", continued=True) == ["h", "ello"]
    assert spelled(with_prefix, "hello") == ["▁hello"]
    assert spelled(without, " hello") == ["▁hello"]


def test_what_no_piece_spells_falls_back_to_bytes() -> None:
    tokenizer = Tokenizer(spm_facts({"▁": -1.0, "a": -2.0}, user_defined=["<a b>"]))
    ids = tokenizer.encode("aé<a b>", special=False)
    spelled = [tokenizer.token_text(index) for index in ids]
    assert spelled == ["▁", "a", "<0xC3>", "<0xA9>", "<a b>"]
    assert b"".join(map(tokenizer.token_bytes, ids)).decode() == " aé<a b>"


@pytest.mark.parametrize(
    "broken",
    [
        replace(byte_facts(), model="bert"),
        replace(byte_facts(), token_types=(1, 1)),
        replace(byte_facts(), eos_id=5000),
        replace(byte_facts(), end_ids=(1, -3)),
        replace(spm_facts({"a": -1.0}), scores=(0.0,)),
        replace(spm_facts({"a": -1.0}), unknown_id=1 << 40),
        byte_facts(user_defined=["\ud800"]),
    ],
    ids=["model", "types", "eos", "end", "scores", "unknown", "no text"],
)
def test_data_that_contradict_themselves_are_refused(broken: Any) -> None:
    with pytest.raises(CheckpointUnreadable):
        Tokenizer(broken)


def test_merges_of_unknown_tokens_are_left_out_and_told() -> None:
    facts = replace(byte_facts(merges=("a b",)), merges=("a b", "a zz", "nospace", " x"))
    tokenizer = Tokenizer(facts)
    assert "3 of 4" in " ".join(tokenizer.notes)
    assert len(tokenizer.encode("ab", special=False)) == 1


def test_gemma_4s_merges_run_over_spelled_spaces_with_bytes_for_the_rest() -> None:
    """A merge is cut at the first space after its start, since a token may begin with one."""
    facts = spm_facts({"▁": -1.0, "a": -1.0, "▁a": -1.0, " ": -1.0, " a": -1.0, "▁▁": -1.0})
    merges = ("▁ ▁", "▁ a", "  a")
    tokenizer = Tokenizer(replace(facts, model="gemma4", merges=merges, add_space_prefix=False))
    ids = tokenizer.encode("a  a a\u00e9", special=False)
    spelled = [tokenizer.token_text(index) for index in ids]
    assert spelled == ["a", "▁▁", "a", "▁a", "<0xC3>", "<0xA9>"]
    assert tokenizer.decode(ids) == "a  a a\u00e9"
    assert tokenizer.notes == ()


def test_an_end_id_that_looks_like_a_marker_is_control_whatever_its_type() -> None:
    facts = byte_facts()
    loose = replace(facts, token_types=(1,) * len(facts.tokens))
    assert Tokenizer(loose).control_ids == {0, 1}
    # The control: an id that spells an ordinary word stays one.
    word = facts.tokens.index("a")
    assert word not in Tokenizer(replace(loose, end_ids=(1, word))).control_ids
