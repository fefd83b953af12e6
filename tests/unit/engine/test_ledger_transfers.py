"""Transfers read exactly, wait for every copy before they let go, and publish whole or never."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.errors import DeviceLost, InvariantBroken, MemoryRefused
from engine.memory.ledger import Ledger
from engine.memory.residency.loads import Loads
from engine.memory.residency.transfers import Transfer, TransferSlots, TransferStatus
from tests.helpers.census import lent
from tests.helpers.residency import Crate

SLOT = 16
CONTENT = bytes(range(100))


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with lent({"pinned": 100, "ram": 100}, behind={"pinned": "ram"}) as ledger:
        yield ledger


@pytest.fixture
def slots(ledger: Ledger) -> Iterator[TransferSlots]:
    lease = ledger.reserve("staging", {"pinned": 2 * SLOT})
    poisoned = [memoryview(bytearray(b"\xff" * SLOT)) for _ in range(2)]
    with TransferSlots(lease, poisoned) as slots:
        yield slots
        assert slots.free_count == 2


def status_of(transfer: Transfer, steps: int) -> TransferStatus:
    for _ in range(steps):
        transfer.step()
    return transfer.status


@pytest.mark.parametrize("size", [0, 1, SLOT - 1, SLOT, SLOT + 1, 100])
def test_every_byte_arrives_once_and_only_then_it_is_published(
    slots: TransferSlots, size: int
) -> None:
    crate = Crate(CONTENT[:size])
    transfer = Transfer(slots, crate)
    while not transfer.is_over:
        assert crate.ends == []
        transfer.step()
    transfer.close()
    assert (bytes(crate.arrived), crate.ends) == (CONTENT[:size], ["published"])
    assert transfer.step() is TransferStatus.PUBLISHED
    assert crate.ends == ["published"]


def test_no_more_slots_are_used_than_there_are_and_each_only_after_its_copy(
    slots: TransferSlots, ledger: Ledger
) -> None:
    assert ledger.pool("ram").committed_bytes == 2 * SLOT
    crate = Crate(CONTENT, at_once=False)
    transfer = Transfer(slots, crate)
    assert status_of(transfer, 3) is TransferStatus.MOVING
    assert (len(crate.arrived), slots.free_count) == (2 * SLOT, 0)
    crate.fences[1].done = True
    assert status_of(transfer, 3) is TransferStatus.MOVING
    assert len(crate.arrived) == 3 * SLOT
    while not transfer.is_over:
        for fence in crate.fences:
            fence.done = True
        transfer.step()
    assert bytes(crate.arrived) == CONTENT


@pytest.mark.parametrize(
    "fault",
    [
        {"short_at": 2 * SLOT},
        {"read_error": OSError("unreadable")},
        {"copy_error": DeviceLost("The device is gone.")},
    ],
)
def test_what_cannot_be_read_whole_or_copied_is_never_published(
    slots: TransferSlots, fault: dict[str, int | Exception]
) -> None:
    crate = Crate(CONTENT, **fault)  # type: ignore[arg-type]
    transfer = Transfer(slots, crate)
    assert status_of(transfer, 9) is TransferStatus.FAILED
    assert crate.ends == ["dropped"]


def test_a_cancelled_transfer_drops_its_target_only_after_the_copies_under_way(
    slots: TransferSlots,
) -> None:
    crate = Crate(CONTENT, at_once=False)
    transfer = Transfer(slots, crate)
    transfer.step()
    transfer.cancel()
    transfer.cancel()
    assert status_of(transfer, 3) is TransferStatus.ENDING
    assert crate.ends == []
    with pytest.raises(InvariantBroken, match="left under way"):
        transfer.close()
    with pytest.raises(InvariantBroken, match="2 of 2 staging slots"):
        slots.close()
    crate.fences[0].done = True
    assert transfer.step() is TransferStatus.ENDING
    crate.fences[1].done = True
    assert transfer.step() is TransferStatus.CANCELLED
    assert crate.ends == ["dropped"]


def test_a_transfer_that_is_cancelled_when_its_last_copy_runs_is_not_published(
    slots: TransferSlots,
) -> None:
    crate = Crate(CONTENT[:SLOT], at_once=False)
    transfer = Transfer(slots, crate)
    transfer.step()
    crate.fences[0].done = True
    transfer.cancel()
    assert transfer.step() is TransferStatus.CANCELLED
    assert crate.ends == ["dropped"]


def test_after_a_failed_copy_slot_and_target_stay_until_the_device_was_reset(
    slots: TransferSlots,
) -> None:
    crate = Crate(CONTENT, at_once=False)
    transfer = Transfer(slots, crate)
    transfer.step()
    crate.fences[0].lost = True
    crate.fences[1].done = True
    assert status_of(transfer, 3) is TransferStatus.ENDING
    assert (crate.ends, slots.free_count) == ([], 1)
    transfer.reset()
    transfer.reset()
    assert (transfer.status, crate.ends) == (TransferStatus.FAILED, ["dropped"])


def test_two_transfers_share_the_slots_and_both_arrive(slots: TransferSlots) -> None:
    crates = [Crate(CONTENT, at_once=False), Crate(CONTENT[::-1], at_once=False)]
    transfers = [Transfer(slots, crate) for crate in crates]
    for _ in range(40):
        for transfer in transfers:
            transfer.step()
        for crate in crates:
            for fence in crate.fences:
                fence.done = True
    assert [bytes(crate.arrived) for crate in crates] == [CONTENT, CONTENT[::-1]]
    assert all(transfer.status is TransferStatus.PUBLISHED for transfer in transfers)


def test_one_thing_is_loaded_once_however_many_ask(slots: TransferSlots) -> None:
    made: list[Crate] = []

    def make() -> Crate:
        made.append(Crate(CONTENT))
        return made[-1]

    with Loads(slots) as loads:
        first = loads.load("layer 3", make)
        assert loads.load("layer 3", make) is loads.prefetch("layer 3", make) is first
        assert (len(made), loads.names) == (1, ("layer 3",))
        while loads.names:
            loads.step()
        assert first.status is TransferStatus.PUBLISHED
        assert loads.load("layer 3", make) is not first
        loads.reset()
    assert [crate.ends for crate in made] == [["published"], ["dropped"]]


def test_a_prefetch_neither_waits_nor_trims(slots: TransferSlots, ledger: Ledger) -> None:
    def refused() -> Crate:
        with ledger.reserve("target", {"ram": 101}):
            raise AssertionError

    with Loads(slots) as loads:
        assert loads.prefetch("too large", refused) is None
        with pytest.raises(MemoryRefused):
            loads.load("too large", refused)
        busy = Crate(CONTENT, at_once=False)
        loads.load("busy", lambda: busy)
        loads.step()
        assert loads.prefetch("later", lambda: Crate(CONTENT)) is None
        assert loads.names == ("busy",)
        with pytest.raises(InvariantBroken, match="left under way"):
            loads.close()
        for fence in busy.fences:
            fence.done = True
    assert busy.ends == ["dropped"]
