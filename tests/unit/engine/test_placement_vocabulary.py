"""The tokenizer's words lie in RAM, whatever computes, and count to the byte."""

from __future__ import annotations

from dataclasses import replace

from engine.memory.placement import Machine, Plan, Refused, Room, Wish, plan_placement
from tests.unit.engine.test_placement import FOOTPRINT, MEBIBYTE, SMOL

WORDS = 27 * MEBIBYTE + 5
WITH_WORDS = replace(FOOTPRINT, vocabulary_bytes=WORDS)
WISH = Wish(512, 1)


def least(machine: Machine) -> dict[str, int]:
    found = plan_placement(machine, WITH_WORDS, SMOL, WISH)
    assert isinstance(found, Refused)
    words = [line for line in found.lines if line.owner == "vocabulary"]
    assert [(line.pool, line.bytes) for line in words] == [("ram", WORDS)]
    assert all(line.reason for line in words)
    return {need.pool: need.needed_bytes for need in found.needs}


def test_they_are_a_line_that_decides_to_the_byte_on_the_processor() -> None:
    needed = least(Machine(Room("ram", 0)))["ram"]
    assert isinstance(plan_placement(Machine(Room("ram", needed)), WITH_WORDS, SMOL, WISH), Plan)
    short = plan_placement(Machine(Room("ram", needed - 1)), WITH_WORDS, SMOL, WISH)
    assert isinstance(short, Refused)
    assert short.needed_bytes - short.free_bytes == 1


def test_beside_a_gpu_they_are_in_ram_too() -> None:
    gpu = Room("gpu0", 8 << 30)
    taken = plan_placement(Machine(Room("ram", 8 << 30), gpu), WITH_WORDS, SMOL, WISH)
    assert isinstance(taken, Plan)
    assert [line.pool for line in taken.lines if line.owner == "vocabulary"] == ["ram"]
    short = plan_placement(Machine(Room("ram", WORDS - 1), gpu), WITH_WORDS, SMOL, WISH)
    assert isinstance(short, Refused) and short.pool == "ram"


def test_a_model_without_words_has_no_such_line() -> None:
    taken = plan_placement(Machine(Room("ram", 8 << 30)), FOOTPRINT, SMOL, WISH)
    assert all(line.owner != "vocabulary" for line in taken.lines)
