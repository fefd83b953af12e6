"""What is said of kept states: from where, how much, why not, and what is waited for."""

from __future__ import annotations

import dataclasses

import pytest

from app.chat.conversation import ReplyFacts
from app.chat.kept.plain import left_out_words, megabytes, seconds
from app.chat.kept.words import reading_words, resume_words, short_reasons, waiting_words
from engine.protocol import REASONS, Progress, Queued

FROM_DISK = ReplyFacts(
    prompt_tokens=8310,
    resumed_tokens=8192,
    resumed_from="disk",
    resumed_bytes=590_000_000,
    resumed_ms=204.0,
)


def text(facts: ReplyFacts, *, begins: bool = False) -> str | None:
    words = resume_words(facts, begins=begins)
    return None if words is None else words.text


def test_what_was_resumed_is_told_with_its_whole_its_place_its_bytes_and_its_time() -> None:
    words = resume_words(FROM_DISK)
    assert words is not None
    assert words.text == "resumed 8,192 of 8,310 tokens from disk, 590 MB in 0.2 s"
    assert words.sentence == "Resumed 8,192 of 8,310 tokens from disk, 590 MB in 0.2 s."
    assert words.tier == "disk"


@pytest.mark.parametrize(
    ("tier", "on_gpu", "place"),
    [
        ("device", False, "memory"),
        ("device", True, "the GPU"),
        ("host", False, "memory"),
        ("host", True, "RAM"),
        ("disk", True, "disk"),
    ],
)
def test_the_place_is_called_what_it_is_on_this_machine(
    tier: str, on_gpu: bool, place: str
) -> None:
    facts = dataclasses.replace(FROM_DISK, resumed_from=tier, on_gpu=on_gpu)
    assert text(facts) == f"resumed 8,192 of 8,310 tokens from {place}, 590 MB in 0.2 s"
    words = resume_words(facts)
    assert words is not None and words.tier == tier


def test_where_nothing_moved_nothing_is_said_of_bytes() -> None:
    facts = dataclasses.replace(FROM_DISK, resumed_from="device", resumed_bytes=0, resumed_ms=0.1)
    assert text(facts) == "resumed 8,192 of 8,310 tokens from memory"


def test_of_a_reply_of_an_older_version_only_the_count_is_told() -> None:
    old = ReplyFacts(prompt_tokens=31, resumed_tokens=7)
    words = resume_words(old)
    assert words is not None
    assert (words.text, words.tier) == ("resumed 7 of 31 tokens", None)


def test_nothing_is_said_where_nothing_was_measured_or_could_be_kept() -> None:
    assert resume_words(ReplyFacts()) is None
    assert resume_words(ReplyFacts(prompt_tokens=31, resumed_tokens=0)) is None
    for reason in ("short-prompt", "nothing-kept"):
        first = ReplyFacts(prompt_tokens=31, resumed_tokens=0, reason=reason)
        assert resume_words(first, begins=True) is None


def test_why_little_was_resumed_is_told_with_what_was_read_again() -> None:
    facts = ReplyFacts(prompt_tokens=6400, resumed_tokens=280, reason="edited")
    words = resume_words(facts)
    assert words is not None
    assert words.text == "read 6,120 again: message edited"
    assert words.sentence == f"6,120 tokens were read again. {REASONS['edited']}"
    assert words.tier is None
    none = ReplyFacts(prompt_tokens=6400, resumed_tokens=0, reason="nothing-kept")
    assert text(none) == "read 6,400: nothing was kept"


def test_where_most_was_resumed_the_reason_stands_in_the_details() -> None:
    facts = dataclasses.replace(FROM_DISK, resumed_tokens=4155, reason="edited")
    words = resume_words(facts)
    assert words is not None and words.tier == "disk"
    assert words.text == "resumed 4,155 of 8,310 tokens from disk, 590 MB in 0.2 s"
    assert words.sentence.endswith(f"0.2 s. {REASONS['edited']}")
    less = text(dataclasses.replace(facts, resumed_tokens=4154))
    assert less == "read 4,156 again: message edited"


def test_every_reason_of_the_engine_has_short_words_of_its_own() -> None:
    assert set(short_reasons()) == set(REASONS)
    assert len(set(short_reasons().values())) == len(short_reasons())
    for reason in REASONS:
        words = resume_words(ReplyFacts(prompt_tokens=1, resumed_tokens=0, reason=reason))
        if reason == "short-prompt":
            assert words is None
            continue
        assert words is not None and words.sentence.startswith("1 token")
        assert words.sentence.endswith(REASONS[reason])


def test_a_reason_that_this_version_does_not_know_is_told_as_it_is() -> None:
    words = resume_words(ReplyFacts(prompt_tokens=9, resumed_tokens=0, reason="moon-phase"))
    assert words is not None
    assert (words.text, words.sentence) == ("read 9 again: moon phase", "9 tokens were read again.")


def queued(reason: str, position: int = 1, needed: int = 0, free: int = 0) -> str:
    told = Queued(
        request=1,
        position=position,
        reason=reason,  # type: ignore[arg-type]
        needed_bytes=needed,
        free_bytes=free,
    )
    return waiting_words(told, 4)


def test_what_is_waited_for_is_told_with_the_place_in_the_line() -> None:
    assert queued("loading") == "Waiting: the model is loading"
    assert queued("chats-at-once", 2) == "Waiting: number 2 in line, 4 chats answer at once"
    assert queued("chats-at-once") == "Waiting: next in line, 4 chats answer at once"
    assert queued("another-prompt", 3).startswith("Waiting: number 3 in line")
    alone = Queued(request=1, position=11, reason="chats-at-once")
    assert waiting_words(alone, 1) == "Waiting: number 11 in line, 1 chats answer at once"


def test_memory_that_is_waited_for_never_looks_as_if_it_were_there() -> None:
    words = queued("memory", needed=1288490189, free=858993459)
    assert words == "Waiting for 1.3 GiB of memory, 819 MiB are free"
    assert queued("memory", needed=2**31 + 1, free=2**31) == (
        "Waiting for 2.1 GiB of memory, 2.0 GiB are free"
    )


def test_reading_and_taking_up_are_told_apart() -> None:
    read = Progress(request=1, phase="prefill", done=300, total=1200)
    assert reading_words(read) == "Reading 1,200 tokens, 25 %"
    resumed = Progress(request=1, phase="resume", done=45_000_000, total=90_000_000)
    assert reading_words(resumed) == "Taking up the chat, 50 % of 90 MB"


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (400, "0 kB"), (12_000, "12 kB"), (999_499, "999 kB"), (999_500, "1.0 MB"),
        (5_900_000, "5.9 MB"), (9_950_000, "10 MB"), (590_000_000, "590 MB"),
        (999_499_999, "999 MB"), (999_500_000, "1.0 GB"), (1_249_000_000, "1.2 GB"),
        (214e9, "214 GB"),
    ],
)  # fmt: skip
def test_bytes_of_a_disk_are_in_its_own_units(count: float, words: str) -> None:
    assert megabytes(int(count)) == words


def test_short_times_keep_two_figures() -> None:
    assert [seconds(ms) for ms in (4.0, 94.0, 96.0, 204.0, 1249.0)] == [
        "0.01 s", "0.09 s", "0.1 s", "0.2 s", "1.2 s",
    ]  # fmt: skip


def test_messages_that_no_longer_fit_are_counted() -> None:
    assert left_out_words(1).startswith("The oldest message no longer fits")
    assert left_out_words(1204).startswith("The 1,204 oldest messages no longer fit")
