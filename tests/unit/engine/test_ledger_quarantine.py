"""What could not be freed stays charged, is named, and is freed by a later attempt."""

from __future__ import annotations

import logging

import pytest

from engine.errors import DeviceLost, InvariantBroken, MemoryRefused, StillHeld
from engine.memory.ledger import Ledger
from tests.helpers.census import lent


class Freeing:
    """Raises as often as it was told, then frees."""

    def __init__(self, failures: int, error: BaseException | None = None) -> None:
        self.failures = failures
        self.error = error or DeviceLost("The device is gone.")
        self.freed = 0

    def __call__(self) -> None:
        if self.failures:
            self.failures -= 1
            raise self.error
        self.freed += 1


def test_credit_comes_back_only_after_the_bytes_were_freed() -> None:
    with lent({"ram": 10}) as ledger:
        lease = ledger.reserve("weights", {"ram": 10})
        lease.commit()
        held: list[int] = []
        lease.release(lambda: held.append(ledger.pool("ram").held_bytes))
        assert (held, ledger.pool("ram").held_bytes) == ([10], 0)
        lease.release(lambda: held.append(-1))
        assert held == [10]


def test_bytes_that_were_not_freed_stay_charged_until_a_retry_frees_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with lent({"ram": 10}) as ledger:
        free = Freeing(2)
        lease = ledger.reserve("weights", {"ram": 6})
        lease.commit()
        with caplog.at_level(logging.ERROR), pytest.raises(DeviceLost):
            lease.release(free)
        assert "memory not freed owner='quarantined weights'" in caplog.text
        lease.close()
        lease.release(free)
        assert ledger.pool("ram").holders == (("quarantined weights", 6),)
        assert ledger.pool("ram").committed_bytes == 6
        with pytest.raises(MemoryRefused, match=r"Held: quarantined weights 0\.1"):
            ledger.reserve("weights", {"ram": 5})
        assert ledger.retry_quarantined() == ("quarantined weights",)
        assert ledger.retry_quarantined() == ()
        assert (free.freed, ledger.pool("ram").held_bytes) == (1, 0)
        lease.close()


def test_what_was_reserved_and_could_neither_be_made_nor_unmade_stays_charged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with lent({"ram": 10}) as ledger:
        free = Freeing(1, BufferError("exported pointers exist"))
        lease = ledger.reserve("staging", {"ram": 4})
        with caplog.at_level(logging.ERROR), pytest.raises(BufferError):
            lease.release(free)
        assert ledger.pool("ram").held_bytes == 4
        assert ledger.retry_quarantined() == ()


def test_one_that_still_fails_keeps_no_other_from_being_freed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR), lent({"ram": 10}) as ledger:
        frees = [Freeing(1), Freeing(3), Freeing(1)]
        for number, free in enumerate(frees):
            with pytest.raises(DeviceLost):
                ledger.reserve(f"part {number}", {"ram": 2}).release(free)
        assert ledger.retry_quarantined() == ("quarantined part 1",)
        assert [free.freed for free in frees] == [1, 0, 1]
        assert ledger.pool("ram").held_bytes == 2
        assert ledger.retry_quarantined() == ("quarantined part 1",)
        assert ledger.retry_quarantined() == ()


def test_a_ledger_closes_only_when_everything_was_freed_and_can_be_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger = Ledger({"ram": 10})
    with caplog.at_level(logging.ERROR), pytest.raises(DeviceLost):
        ledger.reserve("weights", {"ram": 6}).release(Freeing(2))
    with pytest.raises(StillHeld, match=r"quarantined weights \{'ram': 6\}"):
        ledger.close()
    ledger.close()
    assert ledger.pool("ram").held_bytes == 0


def test_a_mistake_of_ours_while_freeing_is_not_held_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR), lent({"ram": 10}) as ledger:
        free = Freeing(1, KeyError("ours"))
        lease = ledger.reserve("weights", {"ram": 6})
        with pytest.raises(KeyError):
            lease.release(free)
        assert lease.is_quarantined
        assert ledger.retry_quarantined() == ()


def test_a_broken_promise_while_freeing_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), lent({"ram": 10}) as ledger:
        with pytest.raises(InvariantBroken):
            ledger.reserve("staging", {"ram": 6}).release(Freeing(2, InvariantBroken("lent")))
        assert ledger.retry_quarantined() == ("quarantined staging",)
        assert ledger.retry_quarantined() == ()
