"""The rules that `tests/conftest.py` applies to every test see what breaks them."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

from tests.helpers import census
from tests.helpers.loud_log import LoudRecords


def test_a_thread_that_stays_is_counted_until_it_ends() -> None:
    before = census.take()
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait, name="stays")
    thread.start()
    assert census.settle(before, grace_s=0.05) == ["thread 'stays'"]
    go_on.set()
    thread.join()
    assert census.settle(before) == []


def test_a_child_that_stays_or_was_not_reaped_is_counted() -> None:
    before = census.take()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (left,) = census.settle(before, grace_s=0.05)
    assert str(child.pid) in left
    child.communicate(b"\n")
    assert census.settle(before) == []


def test_a_warning_is_kept_and_a_remark_is_not() -> None:
    records = LoudRecords()
    log = logging.getLogger("hearth.tests.loud")
    log.propagate = False
    log.addHandler(records)
    log.info("state=ready")
    log.warning("disk full free_bytes=%d", 12)
    assert records.found == ["WARNING hearth.tests.loud: disk full free_bytes=12"]


def test_a_warning_of_the_reference_is_none_of_ours() -> None:
    records = LoudRecords()
    for name in ("transformers.modeling_utils", "transformers_of_ours"):
        records.emit(logging.makeLogRecord({"name": name, "levelname": "WARNING", "msg": "odd"}))
    assert [line.split()[1] for line in records.found] == ["transformers_of_ours:"]
