"""Residents: many readers or one writer, versions, epochs, and ends only when work has ended."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from engine.errors import DeviceLost, InvariantBroken
from engine.memory.ledger import Ledger
from engine.memory.residency.residents import Access, Busy, Hold, ResidentKey, Residents
from engine.memory.residency.working_set import WorkingSet, hold_all
from tests.helpers.census import lent
from tests.helpers.residency import Fence, Memory

READ, WRITE = Access.READ, Access.WRITE


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with lent({"ram": 1000}) as ledger:
        yield ledger


@pytest.fixture
def residents(ledger: Ledger) -> Iterator[Residents]:  # noqa: ARG001 - closed before the ledger
    with Residents() as residents:
        yield residents


def made(residents: Residents, ledger: Ledger, name: str) -> tuple[ResidentKey, Memory]:
    memory = Memory.of(ledger, name, 10)
    return residents.register("model", name, memory.lease, memory.free), memory


def held(residents: Residents, key: ResidentKey, access: Access) -> Hold:
    found = residents.hold(key, access)
    assert isinstance(found, Hold)
    return found


def test_many_read_and_a_writer_waits_for_all_of_them(residents: Residents, ledger: Ledger) -> None:
    key, _ = made(residents, ledger, "layer 3")
    readers = [held(residents, key, READ) for _ in range(3)]
    for left in (3, 2, 1):
        assert residents.hold(key, WRITE) == Busy(key, left, is_written=False)
        readers.pop().close()
    with held(residents, key, WRITE):
        for access in (READ, WRITE):
            assert residents.hold(key, access) == Busy(key, 0, is_written=True)
        assert residents.version(key) == 0
    assert residents.version(key) == 1
    held(residents, key, READ).close()
    assert residents.version(key) == 1


def test_a_key_is_registered_once_and_its_name_comes_back_in_a_new_epoch(
    residents: Residents, ledger: Ledger
) -> None:
    key, memory = made(residents, ledger, "slot 1")
    other = Memory.of(ledger, "slot 1", 10)
    with other.lease, pytest.raises(InvariantBroken, match="registered twice"):
        residents.register("model", "slot 1", other.lease, other.free)
    assert residents.remove(key) is None
    assert (memory.freed, ledger.pool("ram").held_bytes) == (1, 0)
    again, _ = made(residents, ledger, "slot 1")
    assert (again.epoch, key.epoch) == (1, 0)
    for use in (residents.version, residents.remove, lambda old: residents.hold(old, READ)):
        with pytest.raises(InvariantBroken, match=r"model/slot 1 \(0\) is not there"):
            use(key)


def test_what_is_in_use_is_not_removed(residents: Residents, ledger: Ledger) -> None:
    key, memory = made(residents, ledger, "layer 0")
    with held(residents, key, READ):
        assert residents.remove(key) == Busy(key, 1, is_written=False)
        with pytest.raises(InvariantBroken, match="still in use"):
            residents.close()
    assert memory.freed == 0


def test_a_hold_ends_only_when_its_work_has_ended(residents: Residents, ledger: Ledger) -> None:
    key, _ = made(residents, ledger, "layer 0")
    fence = Fence()
    hold = held(residents, key, WRITE)
    hold.close_after(fence)
    hold.close()
    assert residents.settle() == ()
    assert isinstance(residents.hold(key, READ), Busy)
    with pytest.raises(InvariantBroken, match="closed twice"):
        hold.close_after(fence)
    fence.done = True
    residents.settle()
    assert residents.version(key) == 1
    held(residents, key, READ).close()


def test_work_that_failed_keeps_its_hold_until_the_device_was_reset(
    residents: Residents, ledger: Ledger
) -> None:
    (lost, memory), (running, _) = (made(residents, ledger, name) for name in ("a", "b"))
    held(residents, lost, READ).close_after(Fence(lost=True))
    held(residents, running, READ).close_after(Fence())
    assert residents.settle() == residents.settle() == (lost,)
    assert residents.remove(lost) == Busy(lost, 1, is_written=False)
    with pytest.raises(InvariantBroken, match="still in use"):
        residents.close()
    assert memory.freed == 0
    residents.reset()
    assert residents.settle() == ()
    assert residents.remove(lost) is residents.remove(running) is None


def test_what_cannot_be_freed_is_no_resident_but_stays_charged(
    residents: Residents, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [DeviceLost("The device is gone.")]

    def free() -> None:
        if failures:
            raise failures.pop()

    lease = ledger.reserve("weights", {"ram": 5})
    key = residents.register("model", "weights", lease, free)
    with caplog.at_level(logging.ERROR), pytest.raises(DeviceLost):
        residents.remove(key)
    assert ledger.pool("ram").holders == (("quarantined weights", 5),)
    assert ledger.retry_quarantined() == ()


def test_a_working_set_is_held_whole_or_not_at_all(residents: Residents, ledger: Ledger) -> None:
    keys = [made(residents, ledger, name)[0] for name in "abc"]
    wishes = dict(zip(keys, (READ, WRITE, READ), strict=True))
    with held(residents, keys[2], WRITE):
        assert hold_all(residents, wishes) == Busy(keys[2], 0, is_written=True)
        held(residents, keys[1], WRITE).close()
    found = hold_all(residents, wishes)
    assert isinstance(found, WorkingSet)
    assert isinstance(residents.hold(keys[0], WRITE), Busy)
    fence = Fence()
    found.close_after(fence)
    found.close()
    assert isinstance(residents.hold(keys[0], WRITE), Busy)
    fence.done = True
    residents.settle()
    again = hold_all(residents, dict.fromkeys(keys, WRITE))
    assert isinstance(again, WorkingSet)
    with again:
        for hold in again.holds:
            hold.close()
            hold.withdraw()
    assert [residents.version(key) for key in keys] == [1, 3, 2]


def test_a_working_set_with_something_that_is_gone_gives_back_what_it_took(
    residents: Residents, ledger: Ledger
) -> None:
    (here, _), (gone, _) = (made(residents, ledger, name) for name in ("here", "gone"))
    residents.remove(gone)
    with pytest.raises(InvariantBroken, match="not there any more"):
        hold_all(residents, {here: WRITE, gone: READ})
    held(residents, here, WRITE).close()
