"""The machine is measured in one place, for the ledger, for plans and for the window."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from engine.errors import InvariantBroken
from engine.memory.ledger import Admits, Ledger, StopAdmitting
from engine.memory.machine import MachineReading, pool_facts, read_machine, refresh
from engine.memory.measured import ProcessMemory, anonymous_bytes, private_bytes
from engine.memory.pools import MEBIBYTE, PoolReading, capacity_bytes, pinned_of, read_disk
from engine.protocol import MeasuredMemory, PoolFacts
from tests.helpers.census import lent

GIBIBYTE = 1024 * MEBIBYTE
RAM = PoolReading("ram", 64 * GIBIBYTE, 44 * GIBIBYTE, 19 * GIBIBYTE, "RAM")
CARD = PoolReading("gpu0", 24 * GIBIBYTE, 22 * GIBIBYTE, 2 * GIBIBYTE, "RTX 4090")


def test_a_machine_without_a_gpu_has_ram_and_a_disk_and_pins_nothing(tmp_path: Path) -> None:
    machine = read_machine(tmp_path, gpus=lambda: ())
    assert [pool.name for pool in machine.pools] == ["ram", "disk"]
    assert (machine.gpus, machine.behind) == ((), {})
    assert machine.pool("gpu0") is None
    assert all(pool.label for pool in machine.pools)


def test_with_a_gpu_half_of_what_ram_may_be_held_may_be_pinned(tmp_path: Path) -> None:
    machine = read_machine(tmp_path, ram=lambda: RAM, gpus=lambda: (CARD,))
    assert [pool.name for pool in machine.pools] == ["gpu0", "ram", "pinned", "disk"]
    capacities = machine.capacities()
    assert machine.gpus == (CARD,)
    assert capacities["ram"] == 40 * GIBIBYTE
    assert capacities["pinned"] == capacity_bytes(pinned_of(RAM)) == 20 * GIBIBYTE
    with lent(capacities, behind=machine.behind) as ledger:
        ledger.reserve("kept states", {"pinned": 20 * GIBIBYTE}).close()
        with ledger.reserve("kept states", {"pinned": GIBIBYTE}) as lease:
            assert ledger.pool("ram").held_bytes == GIBIBYTE
            lease.commit()
            refresh(ledger, lambda: machine)
            assert ledger.pool("pinned").capacity_bytes == 21 * GIBIBYTE


def test_a_gpu_keeps_a_tenth_for_the_screen_and_no_less_than_a_gibibyte() -> None:
    assert capacity_bytes(CARD) == 22 * GIBIBYTE - 24 * GIBIBYTE // 10
    assert capacity_bytes(PoolReading("gpu1", 6 * GIBIBYTE, 6 * GIBIBYTE)) == 5 * GIBIBYTE
    assert capacity_bytes(PoolReading("gpu1", 0, 0)) == 0


def test_a_person_may_spend_what_is_left_to_others_but_never_more_than_is_free() -> None:
    machine = MachineReading((CARD, RAM))
    assert machine.capacities({"gpu0": GIBIBYTE}, spends_headroom=True) == {
        "gpu0": 23 * GIBIBYTE,
        "ram": 44 * GIBIBYTE,
    }


def test_a_refresh_counts_what_is_held_as_far_as_it_is_physical() -> None:
    with lent({"ram": 40 * GIBIBYTE, "other": 5}) as ledger:
        with ledger.reserve("KV pages", {"ram": 30 * GIBIBYTE}) as lease:
            lease.commit()
            untouched = refresh(ledger, lambda: MachineReading((RAM, CARD)), lambda: GIBIBYTE)
            assert untouched == Admits()
            assert ledger.pool("ram").capacity_bytes == 41 * GIBIBYTE
            full = PoolReading("ram", 64 * GIBIBYTE, 3 * GIBIBYTE)
            assert refresh(ledger, lambda: MachineReading((full,)), lambda: 31 * GIBIBYTE) == (
                StopAdmitting(("ram",))
            )
            assert ledger.pool("ram").held_bytes == 30 * GIBIBYTE
            refresh(ledger, lambda: MachineReading((RAM,)), lambda: None)
            assert ledger.pool("ram").capacity_bytes == 60 * GIBIBYTE
        assert ledger.pool("other").capacity_bytes == 5


def test_a_refresh_of_a_ledger_without_ram_needs_no_measure_of_this_process() -> None:
    with lent({"gpu0": 1}) as ledger:
        assert refresh(ledger, lambda: MachineReading((CARD,)), lambda: 5) == Admits()
        assert ledger.pool("gpu0").capacity_bytes == capacity_bytes(CARD)


def test_a_refresh_whose_measurement_fails_changes_nothing() -> None:
    def fails() -> MachineReading:
        raise OSError("unreadable")

    with lent({"ram": 7}) as ledger:
        with pytest.raises(OSError, match="unreadable"):
            refresh(ledger, fails)
        with ledger.reserve("not yet", {"ram": 1}), pytest.raises(InvariantBroken):
            refresh(ledger, lambda: MachineReading((RAM,)))
        assert ledger.pool("ram").capacity_bytes == 7


def test_the_window_sees_what_is_held_beside_what_was_measured() -> None:
    ledger = Ledger({"ram": 40, "odd": 3})
    with ledger.reserve("weights", {"ram": 30}):
        assert pool_facts(ledger, MachineReading((CARD, RAM))) == (
            PoolFacts(
                name="ram",
                capacity_bytes=40,
                free_bytes=10,
                holders=(("weights", 30),),
                total_bytes=64 * GIBIBYTE,
                others_bytes=19 * GIBIBYTE,
                label="RAM",
            ),
            PoolFacts(name="odd", capacity_bytes=3, free_bytes=3),
        )
    ledger.close()


def test_a_disk_is_named_by_its_file_system_s_root(tmp_path: Path) -> None:
    found = read_disk(tmp_path / "not" / "yet")
    assert Path(found.label).is_mount()
    assert tmp_path.is_relative_to(found.label)
    assert found.others_bytes == found.total_bytes - found.free_bytes


def test_anonymous_bytes_are_the_system_s_sum(tmp_path: Path) -> None:
    file = tmp_path / "rollup"
    file.write_text("Rss:   9 kB\nAnonymous:        12345 kB\nSwap: 0 kB\n")
    assert anonymous_bytes(file, "linux") == 12345 * 1024


@pytest.mark.parametrize("text", ["", "Anonymous: many kB\n", "Rss: 1 kB\n"])
def test_what_the_system_does_not_tell_is_not_made_up(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rollup"
    assert anonymous_bytes(file, "darwin") is None
    file.write_text(text)
    assert anonymous_bytes(file, "linux") is None


def test_windows_calls_them_private() -> None:
    class Facts:
        private = 77

    assert private_bytes(Facts()) == 77
    assert private_bytes(object()) is None
    assert anonymous_bytes(Path("unused"), "win32") is None


def test_this_process_grows_by_what_it_touches() -> None:
    before = anonymous_bytes()
    if before is None:
        return
    # Straight from the system: the allocator may have room left from what others gave back.
    with mmap.mmap(-1, 32 * MEBIBYTE, access=mmap.ACCESS_COPY) as taken:
        taken.write(b"\x01" * (32 * MEBIBYTE))
        after = anonymous_bytes()
    assert after is not None
    assert 31 * MEBIBYTE < after - before < 48 * MEBIBYTE


def test_the_peak_is_the_most_that_was_seen_since_the_mark() -> None:
    readings = iter([100, 100, 160, 130, 90, 90, 95])
    memory = ProcessMemory(lambda: next(readings))
    memory.mark()
    assert memory.look() == 60
    assert memory.measured(500) == MeasuredMemory(
        anonymous_bytes=30, peak_bytes=60, planned_bytes=500
    )
    assert memory.measured(0).anonymous_bytes == 0
    memory.mark()
    assert memory.measured(1) == MeasuredMemory(anonymous_bytes=5, peak_bytes=5, planned_bytes=1)


@pytest.mark.parametrize("readings", [[None, 5], [5, None]])
def test_what_the_system_does_not_tell_is_told_as_nothing(readings: list[int | None]) -> None:
    told = iter(readings)
    memory = ProcessMemory(lambda: next(told))
    assert memory.measured(9) == MeasuredMemory(planned_bytes=9)
