"""What holds for every test: no unexpected warning in the log, nothing left running afterwards.

A test that expects log records asks for pytest's ``caplog`` and looks at them itself. Python
warnings are errors by pytest's configuration.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

import pytest

from tests.helpers import census
from tests.helpers.loud_log import LoudRecords, listen_to_qt

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# A shell's background job ignores Ctrl+C, and so would every command that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def loud_records() -> Iterator[LoudRecords]:
    """One handler on the root logger for the whole run."""
    records = LoudRecords()
    logging.getLogger().addHandler(records)
    yield records
    logging.getLogger().removeHandler(records)


@pytest.fixture(autouse=True)
def nothing_unexpected(request: pytest.FixtureRequest, loud_records: LoudRecords) -> Iterator[None]:
    """Fail a test that logged a warning it did not expect, or left a thread or child behind."""
    before = census.take()
    loud_records.found.clear()
    listen_to_qt(loud_records)
    yield
    listen_to_qt(loud_records)
    left = census.settle(before)
    logged = [] if "caplog" in request.fixturenames else list(loud_records.found)
    assert not left, f"left behind by the test: {'; '.join(left)}"
    assert not logged, "logged and not expected: " + "; ".join(logged)
