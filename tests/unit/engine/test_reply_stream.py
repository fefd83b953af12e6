"""A streamed reply is the decoded reply, in regions, ended before a stop string."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders

from engine.text.regions import overlap
from engine.text.stream import ReplyStream
from engine.text.thinking import ThinkingTags, ends_inside, find_tags
from engine.text.tokenizer import Tokenizer
from tests.helpers.text import byte_facts, smol_tokenizer, spm_facts

THINK = ThinkingTags("<think>", "</think>")
PIECES = {"▁": -1.0, "▁▁": -2.0, "▁hello": -3.0, "hello": -4.0, "h": -5.0, "é": -6.0, "\n": -7.0}
SPM = Tokenizer(spm_facts(PIECES, user_defined=["<a b>"]))
BYTES = Tokenizer(byte_facts(user_defined=["é ü", "<think>", "</think>"]))


def streamed(stream: ReplyStream, ids: Sequence[int]) -> list[tuple[str, str]]:
    pieces = [piece for index in ids for piece in stream.push(index)]
    return [*pieces, *stream.finish()]


def joined(pieces: Sequence[tuple[str, str]], region: str | None = None) -> str:
    return "".join(text for where, text in pieces if region in (None, where))


def spell(tokenizer: Tokenizer, text: str) -> list[int]:
    """One id a byte or letter, so that every cut between tokens is tried."""
    return [index for letter in text for index in tokenizer.encode(letter, special=False)]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, BYTES.size - 1)))
def test_streamed_bytes_are_the_decoded_text(ids: list[int]) -> None:
    """The reference is UTF-8 decoding of all bytes at once, and tokenizers' own decoder."""
    shown = [index for index in ids if not BYTES.is_control(index)]
    expected = b"".join(map(BYTES.token_bytes, shown)).decode("utf-8", "replace")
    assert joined(streamed(ReplyStream(BYTES), ids)) == expected
    assert BYTES.decode(ids) == expected
    reference = decoders.ByteLevel().decode([BYTES.token_text(index) for index in shown])
    assert expected == reference


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.integers(0, SPM.size - 1) | st.sampled_from([3 + byte for byte in "é🙂".encode()]),
        max_size=40,
    )
)
def test_streamed_pieces_are_the_decoded_text(ids: list[int]) -> None:
    """The reference is tokenizers' decoder for SPM with byte fallback, spaces included."""
    reference = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    expected = reference.decode([SPM.token_text(i) for i in ids if not SPM.is_control(i)])
    assert joined(streamed(ReplyStream(SPM), ids)) == expected
    assert SPM.decode(ids) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 49151), max_size=40))
def test_the_real_vocabulary_streams_as_it_decodes(ids: list[int]) -> None:
    tokenizer = smol_tokenizer()
    assert joined(streamed(ReplyStream(tokenizer), ids)) == tokenizer.decode(ids)


def test_leading_spaces_stay() -> None:
    hello = 3 + 256 + 1 + list(PIECES).index("▁hello")
    assert SPM.token_text(hello) == "▁hello"
    assert joined(streamed(ReplyStream(SPM), [hello, hello])) == " hello hello"
    assert joined(streamed(ReplyStream(BYTES), spell(BYTES, "    x"))) == "    x"


def test_a_character_comes_once_it_is_whole() -> None:
    stream = ReplyStream(BYTES)
    given_at = [joined(stream.push(index)) for index in spell(BYTES, "é🙂")]
    assert given_at == ["", "é", "", "", "", "🙂"]
    assert stream.finish() == []


def test_what_never_becomes_whole_is_one_replacement_character() -> None:
    ids = spell(BYTES, "a🙂")[:-1]
    assert joined(streamed(ReplyStream(BYTES), ids)) == "a\ufffd"


def test_a_long_run_of_byte_tokens_is_not_held_for_ever() -> None:
    stream = ReplyStream(SPM)
    ids = [3 + byte for byte in ("漢" * 100).encode()]
    given_at = [joined(stream.push(index)) for index in ids]
    assert max(len(text.encode()) for text in given_at) <= 96
    assert "".join(given_at) + joined(stream.finish()) == "漢" * 100


def test_control_tokens_are_skipped_by_id_and_not_by_text() -> None:
    ids = [*spell(BYTES, "a</s>b"), 1, *spell(BYTES, "c")]
    assert joined(streamed(ReplyStream(BYTES), ids)) == "a</s>bc"


@settings(max_examples=150, deadline=None)
@given(
    st.text("abc", max_size=20),
    st.lists(st.text("abc", max_size=4), max_size=3),
)
def test_text_ends_before_the_first_stop_string(text: str, stop: list[str]) -> None:
    """Against a plain search that sees the text grow letter by letter."""
    stream = ReplyStream(BYTES, stop=stop)
    given_text = joined(streamed(stream, spell(BYTES, text)))
    wanted = [one for one in stop if one]
    grown = (text[:length] for length in range(len(text) + 1))
    met = next((part for part in grown if any(one in part for one in wanted)), None)
    assert stream.stopped == (met is not None)
    if met is None:
        assert given_text == text
    else:
        assert given_text == met[: min(met.find(one) for one in wanted if one in met)]


def test_a_stop_string_inside_one_token_and_across_two() -> None:
    tokenizer = Tokenizer(byte_facts(merges=("E N", "EN D", "a b")))
    ids = {text: tokenizer.encode(text, special=False)[0] for text in ("EN", "END", "ab", "D")}
    for reply in ([ids["ab"], ids["END"], ids["ab"]], [ids["ab"], ids["EN"], ids["D"], ids["ab"]]):
        stream = ReplyStream(tokenizer, stop=["ND"])
        assert joined(streamed(stream, reply)) == "abE"
        assert stream.stopped
    assert joined(streamed(ReplyStream(tokenizer, stop=["NX"]), [ids["EN"], ids["D"]])) == "END"


def test_no_more_is_held_than_a_stop_string_may_take() -> None:
    stream = ReplyStream(BYTES, stop=["aaaab"])
    held = 0
    for letters, index in enumerate(spell(BYTES, "a" * 50), start=1):
        held += len(joined(stream.push(index)))
        assert letters - held <= 4


def test_thinking_that_began_in_the_prompt_ends_at_its_tag() -> None:
    """The prompt ended with the opening tag; the reply has only the closing one."""
    stream = ReplyStream(BYTES, tags=THINK, starts_in_thinking=True)
    pieces = streamed(stream, spell(BYTES, "plan </think> answer"))
    assert joined(pieces, "thinking") == "plan "
    assert joined(pieces, "answer") == " answer"


@pytest.mark.parametrize("as_token", [True, False])
def test_thinking_that_the_reply_opens_is_apart(as_token: bool) -> None:
    def tag(text: str) -> list[int]:
        return BYTES.encode(text, special=False) if as_token else spell(BYTES, text)

    ids = [*tag("<think>"), *spell(BYTES, "\nhm < x"), *tag("</think>"), *spell(BYTES, "\n\nYes.")]
    pieces = streamed(ReplyStream(BYTES, tags=THINK), ids)
    assert joined(pieces, "thinking") == "hm < x"
    assert joined(pieces, "answer") == "Yes."


def test_tags_that_are_control_tokens_are_tags() -> None:
    tokenizer = Tokenizer(byte_facts(control=("<s>", "</s>", "<think>", "</think>")))
    ids = [2, *spell(tokenizer, "why"), 3, *spell(tokenizer, "so")]
    pieces = streamed(ReplyStream(tokenizer, tags=find_tags(None, tokenizer)), ids)
    assert (joined(pieces, "thinking"), joined(pieces, "answer")) == ("why", "so")
    # The control: without tags the same tokens are skipped like any other.
    assert joined(streamed(ReplyStream(tokenizer), ids)) == "whyso"


@pytest.mark.parametrize(
    "reply",
    ["The tag <think> opens it.", "a</think>b", "<thin air", "   <th", "", " \n" * 80 + "<think>x"],
)
def test_a_tag_that_does_not_begin_the_reply_is_text(reply: str) -> None:
    pieces = streamed(ReplyStream(BYTES, tags=THINK), spell(BYTES, reply))
    assert joined(pieces, "answer") == reply
    assert joined(pieces, "thinking") == ""


def test_a_second_closing_tag_is_text() -> None:
    stream = ReplyStream(BYTES, tags=THINK, starts_in_thinking=True)
    pieces = streamed(stream, spell(BYTES, "a</think>Write </think> to end."))
    assert joined(pieces, "answer") == "Write </think> to end."


def test_a_stop_string_does_not_reach_over_the_end_of_thinking() -> None:
    stream = ReplyStream(BYTES, tags=THINK, starts_in_thinking=True, stop=["ab"])
    pieces = streamed(stream, spell(BYTES, "xa</think>b"))
    assert (joined(pieces, "thinking"), joined(pieces, "answer")) == ("xa", "b")
    assert not stream.stopped


def test_a_reply_cut_inside_a_tag_keeps_what_was_written() -> None:
    stream = ReplyStream(BYTES, tags=THINK, starts_in_thinking=True)
    assert joined(streamed(stream, spell(BYTES, "plan </thi")), "thinking") == "plan </thi"


def test_tags_are_used_only_where_the_checkpoint_knows_them() -> None:
    assert find_tags(None, smol_tokenizer()) is None
    assert find_tags("{{ 'x' }}", smol_tokenizer()) is None
    assert find_tags("..'</think>'..", smol_tokenizer()) == THINK
    assert find_tags(None, BYTES) == THINK


def test_a_prompt_ends_inside_thinking_by_its_last_tag() -> None:
    assert ends_inside("<|im_start|>assistant\n<think>\n", THINK)
    assert not ends_inside("assistant\n<think>\n\n</think>\n\n", THINK)
    assert not ends_inside("assistant\n", THINK)
    assert not ends_inside("<think>\n", None)


@given(st.text("ab", max_size=8), st.text("ab", min_size=1, max_size=5))
def test_overlap_is_the_longest_end_that_begins_the_wanted(text: str, wanted: str) -> None:
    ends = [n for n in range(1, len(wanted)) if n <= len(text) and wanted.startswith(text[-n:])]
    assert overlap(text, wanted) == max(ends, default=0)
