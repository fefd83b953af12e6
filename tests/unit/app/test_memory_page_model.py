"""What the memory page says: parts of pools, rows of kept chats, amounts and times. No window."""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta

import msgspec
import pytest

from app.memory.cards import Mark, PartKind, bar_parts, cards
from app.memory.model import Told, memory_view, tiers_of
from app.memory.rows import (
    RANKS,
    Column,
    KeptRow,
    KnownChat,
    Moment,
    count_words,
    delete_question,
    filtered_rows,
    kept_rows,
    resume_words,
    sorted_rows,
    where_words,
)
from app.memory.words import disk_size, gib, last_used, memory_size, seconds
from engine.protocol import (
    MeasuredMemory,
    MemoryFacts,
    PlanLine,
    PoolFacts,
    StateFacts,
    StatesKept,
    Tier,
)

GIB, MIB, GB = 2**30, 2**20, 10**9
NOW = datetime(2026, 11, 30, 19, 0, 0).timestamp()
RAM = PoolFacts(
    name="ram",
    capacity_bytes=10 * GIB,
    free_bytes=5 * GIB,
    holders=(("weights", 4 * GIB), ("KV pages", GIB), ("a thing without a word", 200 * MIB)),
    total_bytes=16 * GIB,
    others_bytes=5 * GIB,
)
GPUS = tuple(
    PoolFacts(name=f"gpu{n}", capacity_bytes=8 * GIB, free_bytes=8 * GIB, total_bytes=8 * GIB)
    for n in range(2)
)


def facts(*pools: PoolFacts, **more: object) -> MemoryFacts:
    return MemoryFacts(request=1, pools=pools, **more)  # type: ignore[arg-type]


def kept(*states: StateFacts, **more: int) -> StatesKept:
    sizes = {"disk_bytes": 0, "quota_bytes": 20 * GB, "disk_free_bytes": 214 * GB} | more
    return StatesKept(request=1, states=states, **sizes)


def state(conversation: str | None, tier: Tier = "disk", **more: object) -> StateFacts:
    whole = {"model": "m", "tokens": 4096, "bytes": 403 * 10**6, "own_bytes": 1, "used_s": NOW}
    return StateFacts(conversation=conversation, tier=tier, **(whole | more))  # type: ignore[arg-type]


# Cards -------------------------------------------------------------------------------------------


def test_the_parts_of_a_pool_add_up_to_it_and_the_large_figure_is_what_is_taken() -> None:
    (card,) = cards(facts(RAM), None)
    assert sum(part.bytes for part in card.parts) == RAM.total_bytes
    assert [(part.name, part.figure) for part in card.parts] == [
        ("Weights", "4.0"),
        ("Chats", "1.0"),
        ("A thing without a word", "0.2"),
        ("Left free", "1.0"),
        ("Other apps", "5.0"),
        ("Free", "4.8"),
    ]
    assert (card.used, card.whole) == ("10.2", "of 16.0 GiB")


def test_whatever_an_engine_says_no_part_is_negative_and_the_sum_holds() -> None:
    chance = random.Random(4)
    names = ("weights", "KV pages", "kept states", "picture part", "x", "X", "workspace")
    for _ in range(400):
        total = chance.choice((0, 1, 7 * GIB, chance.randrange(64 * GIB)))
        holders = tuple(
            (chance.choice(names), chance.randrange(3 * GIB)) for _ in range(chance.randrange(5))
        )
        pool = PoolFacts(
            name="ram",
            capacity_bytes=chance.randrange(64 * GIB),
            free_bytes=chance.randrange(64 * GIB),
            holders=holders,
            total_bytes=total,
            others_bytes=chance.randrange(64 * GIB),
        )
        plan = (PlanLine(pool="ram", owner="kept states", bytes=chance.randrange(GIB), reason=""),)
        (card,) = cards(facts(pool, plan=plan), None)
        whole = max(total or pool.capacity_bytes, sum(size for _, size in holders))
        assert sum(part.bytes for part in card.parts) == whole
        assert all(part.bytes >= 0 for part in card.parts)


def test_the_plan_divides_pages_that_chats_and_kept_chats_share() -> None:
    plan = (PlanLine(pool="ram", owner="kept states", bytes=700 * MIB, reason=""),)
    (card,) = cards(facts(RAM, plan=plan), None)
    sizes = {part.name: part.bytes for part in card.parts}
    assert (sizes["Chats"], sizes["Kept chats"]) == (GIB - 700 * MIB, 700 * MIB)
    told = PoolFacts(
        name="ram",
        capacity_bytes=GIB,
        free_bytes=0,
        holders=(("KV pages", 5), ("kept states in memory", 7)),
    )
    (card,) = cards(facts(told, plan=plan), None)
    assert [p.bytes for p in card.parts if p.kind is PartKind.CHATS] == [5]


def test_gpus_come_first_in_their_order_then_ram_then_disk_and_pinned_memory_has_no_card() -> None:
    pinned = PoolFacts(name="pinned", capacity_bytes=GIB, free_bytes=GIB)
    disk = PoolFacts(name="disk", capacity_bytes=GIB, free_bytes=GIB)
    made = cards(facts(RAM, pinned, GPUS[1], disk, GPUS[0]), kept())
    assert [card.title for card in made] == ["GPU 0", "GPU 1", "RAM", "Disk"]
    assert [card.title for card in cards(facts(RAM), kept())] == ["RAM", "Disk"]


def test_a_measured_peak_above_the_plan_is_marked_and_one_within_tolerance_is_not() -> None:
    def mark(peak: int | None) -> tuple[Mark, str]:
        measured = MeasuredMemory(peak_bytes=peak, planned_bytes=10 * GIB)
        (card,) = cards(facts(RAM, measured=measured), None)
        return card.mark, card.foot

    assert mark(int(9.9 * GIB)) == (Mark.GOOD, "Planned 10.0, highest measured 9.9 GiB")
    assert mark(int(10.5 * GIB) + 64 * MIB)[0] is Mark.GOOD
    assert mark(int(10.5 * GIB) + 65 * MIB)[0] is Mark.WARN
    assert mark(None) == (Mark.NONE, "Planned 10.0 GiB")


def test_the_disk_says_its_share_what_is_left_of_it_and_that_the_oldest_goes() -> None:
    (card,) = cards(
        None, kept(disk_bytes=int(18.6 * GB), quota_bytes=40 * GB, shared_bytes=14 * GB)
    )
    assert (card.used, card.whole) == ("18.6", "of 40 GB for kept chats")
    assert [part.figure for part in card.parts] == ["14.0", "4.6", "21.4"]
    assert card.foot == "214 GB free on the disk · oldest goes first"
    (off,) = cards(None, kept(quota_bytes=0))
    assert off.foot == "Chats are not kept on the disk"


def test_a_screen_reader_gets_every_part_of_a_card() -> None:
    (card,) = cards(facts(RAM), None)
    assert all(f"{part.name} {part.figure}" in card.description for part in card.parts)


def test_the_small_bar_shows_what_is_hearths_own_of_the_first_pool() -> None:
    parts = bar_parts(facts(RAM))
    assert [part.kind for part in parts][-1] is PartKind.FREE
    assert PartKind.OTHER not in [part.kind for part in parts]
    assert sum(part.bytes for part in parts) == RAM.total_bytes
    assert bar_parts(None) == ()


# Rows --------------------------------------------------------------------------------------------

CHATS = (
    KnownChat(1, "1", "Gas meter readings", NOW - 30),
    KnownChat(2, "2", "Cover letter", NOW - 86_400),
    KnownChat(3, "3", "Birthday speech", NOW - 5 * 86_400, tokens=5210, read_s=2.2),
    KnownChat(4, "4", "Nothing known", NOW - 9 * 86_400),
)


def test_every_chat_has_a_row_and_one_that_is_only_text_says_what_reading_it_costs() -> None:
    rows = kept_rows((state("2"), state("1", "device")), CHATS, Moment(NOW, gpu=True))
    assert [(row.title, row.where, row.tokens, row.note) for row in rows] == [
        ("Cover letter", "On disk", "4,096", ""),
        ("Gas meter readings", "On the GPU", "4,096", ""),
        ("Birthday speech", "Text only", "", "5,210 tokens, read again once in about 2 s"),
        ("Nothing known", "Text only", "", ""),
    ]
    assert [row.kept for row in rows] == [True, True, False, False]


def test_memory_is_told_in_mib_and_the_disk_in_mb() -> None:
    rows = kept_rows((state("1", "device"), state("2")), CHATS, Moment(NOW))
    assert [row.size for row in rows[:2]] == ["384 MiB", "403 MB"]


def test_a_chat_that_answers_says_so_and_stands_first_by_use() -> None:
    rows = kept_rows((state("1"), state("2")), CHATS, Moment(NOW, answering=frozenset({2, 3})))
    assert {row.title: row.used for row in rows}["Cover letter"] == "answering"
    by_use = sorted_rows(rows, Column.USED)
    assert {row.title for row in by_use[:2]} <= {"Cover letter", "Birthday speech", CHATS[0].title}


def test_what_belongs_to_no_chat_that_is_known_is_named_too() -> None:
    rows = kept_rows((state(None), state("77")), CHATS, Moment(NOW))
    assert [(row.title, row.chat) for row in rows[:2]] == [
        ("Common beginnings", None),
        ("A deleted chat", None),
    ]


def test_models_are_called_as_the_window_calls_them() -> None:
    moment = Moment(NOW, names={"m": "SmolLM2 135M Instruct"})
    rows = kept_rows((state("1"), state("2", model="n")), CHATS[:2], moment)
    assert [row.model for row in rows] == ["SmolLM2 135M Instruct", "n"]


def test_a_label_that_only_repeats_the_title_is_left_out() -> None:
    named = [msgspec.structs.replace(RAM, label=label) for label in ("RAM", "DDR5")]
    assert [cards(facts(pool), None)[0].label for pool in named] == ["", "DDR5"]


def test_two_models_of_one_chat_are_two_rows_and_one_chat_in_the_count() -> None:
    rows = kept_rows((state("1"), state("1", model="other")), CHATS[:1], Moment(NOW))
    assert len({row.key for row in rows}) == 2
    assert count_words(rows) == "1 chat, read once and kept"
    assert count_words(kept_rows((), CHATS, Moment(NOW))) == ""


def test_rows_sort_by_every_column_both_ways_and_the_quickest_comes_first() -> None:
    tiers: tuple[Tier, ...] = ("disk", "device", "host")
    states = [
        state(str(n), tiers[n % 3], tokens=100 * (n * 7 % 5), bytes=n * 11 % 6, model=f"M{n % 4}")
        for n in range(1, 5)
    ]
    rows = kept_rows(states, CHATS, Moment(NOW))
    assert [RANKS[row.tier] for row in sorted_rows(rows)] == sorted(RANKS[r.tier] for r in rows)
    for column in Column:
        there, back = sorted_rows(rows, column), sorted_rows(rows, column, falling=True)
        assert set(there) == set(back) == set(rows)
    assert [row.amounts[0] for row in sorted_rows(rows, Column.TOKENS)] == sorted(
        (row.amounts[0] for row in rows), reverse=True
    )
    titles = [row.title for row in sorted_rows(rows, Column.CHAT)]
    assert titles == sorted(titles, key=str.casefold)
    assert [row.title for row in sorted_rows(rows, Column.CHAT, falling=True)] == titles[::-1]


def test_a_filter_wants_every_word_in_title_model_or_place() -> None:
    rows = kept_rows((state("1", "device"), state("2", model="Gemma 4")), CHATS, Moment(NOW))

    def found(wanted: str) -> list[str]:
        return [row.title for row in filtered_rows(rows, wanted)]

    assert found("  ") == [row.title for row in rows]
    assert found("LETTER gemma") == ["Cover letter"]
    assert found("disk") == ["Cover letter"] and found("letter nothing") == []


def test_deleting_says_how_much_is_read_again() -> None:
    (row,) = kept_rows((state("1", tokens=1),), CHATS[:1], Moment(NOW))
    assert "reads 1 token again, once" in delete_question(row)


def test_tiers_have_words_of_their_own_with_and_without_a_gpu() -> None:
    tiers: tuple[Tier, ...] = ("device", "host", "disk", "none")
    assert len({where_words(tier, gpu=True) for tier in tiers}) == 4
    assert where_words("device", gpu=False) == where_words("host", gpu=False) == "In memory"
    for gpu in (True, False):
        assert len({resume_words(tier, gpu=gpu) for tier in tiers}) == 4
        assert "GPU" in resume_words("device", gpu=True) or not gpu
    assert "GPU" not in "".join(resume_words(tier, gpu=False) for tier in tiers)


def test_without_a_loaded_model_the_best_kept_state_of_a_chat_counts() -> None:
    rows = kept_rows(
        (state("1", "disk"), state("1", "host", model="n"), state(None, "device")),
        CHATS,
        Moment(NOW),
    )
    assert {chat: tier.tier for chat, tier in tiers_of(rows).items()} == {1: "host"}


def test_without_an_engine_there_are_no_figures_and_no_rows() -> None:
    told = Told(there=False, memory=facts(RAM), states=kept(state("1")), chats=CHATS)
    view = memory_view(told, NOW)
    assert (view.there, view.cards, view.rows, view.bar) == (False, (), (), ())


def test_two_thousand_chats_are_made_rows_within_a_blink() -> None:
    chats = tuple(KnownChat(n, str(n), f"Chat {n}", NOW - n) for n in range(2_000))
    states = tuple(state(str(n)) for n in range(0, 2_000, 2))
    began = time.perf_counter()
    rows = sorted_rows(filtered_rows(kept_rows(states, chats, Moment(NOW)), "chat"))
    assert len(rows) == 2_000
    assert time.perf_counter() - began < 1.0


# Words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (timedelta(seconds=-5), "now"),
        (timedelta(seconds=59), "now"),
        (timedelta(minutes=20, seconds=59), "20 min ago"),
        (timedelta(hours=2, minutes=59), "2 h ago"),
        (timedelta(hours=20), "yesterday"),
        (timedelta(days=1), "yesterday"),
        (timedelta(days=4), "4 days ago"),
        (timedelta(days=14), "14 days ago"),
        (timedelta(days=15), "15 Nov"),
        (timedelta(days=400), "26 Oct 2025"),
    ],
)
def test_times_are_told_by_the_calendar(before: timedelta, words: str) -> None:
    used = datetime.fromtimestamp(NOW) - before
    assert last_used(used.timestamp(), NOW) == words


def test_a_time_that_is_not_known_is_not_told() -> None:
    assert last_used(0, NOW) == ""


def test_small_amounts_keep_their_own_unit() -> None:
    assert [gib(n) for n in (0, 1, 40 * MIB, 60 * MIB, 5 * GIB + 300 * MIB)] == [
        "0.0",
        "1 MiB",
        "40 MiB",
        "0.1",
        "5.3",
    ]
    assert (memory_size(324 * MIB), memory_size(int(1.25 * GIB))) == ("324 MiB", "1.2 GiB")
    assert (disk_size(514_000_000), disk_size(0), disk_size(3)) == ("514 MB", "0 MB", "1 MB")
    assert [seconds(s) for s in (0.01, 0.44, 12.4, 240)] == ["0.1 s", "0.4 s", "12 s", "4 min"]


def test_rows_are_told_apart_by_conversation_and_model() -> None:
    rows: tuple[KeptRow, ...] = kept_rows((state("1"),), CHATS, Moment(NOW))
    assert len({row.key for row in rows}) == len(rows)
