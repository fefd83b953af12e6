"""Whatever stops set-up, a person reads one sentence and a caller gets a code that fits."""

from __future__ import annotations

import io

import pytest

from installer.ending import end_well
from installer.problems import SetupProblem
from installer.report import Report


def ended(work_error: BaseException | None) -> tuple[int, str]:
    stream = io.StringIO()

    def work() -> int:
        if work_error is not None:
            raise work_error
        return 7

    return end_well(work, Report(stream)), stream.getvalue()


def test_work_that_ends_by_itself_keeps_its_code() -> None:
    assert ended(None) == (7, "")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (SetupProblem("No space."), 1, "hearth: No space.\n"),
        (SetupProblem("No display.", 2), 2, "hearth: No display.\n"),
        (KeyboardInterrupt(), 130, "hearth: interrupted; start the same command again to go on.\n"),
        (OSError(13, "Permission denied", "x"), 1,
         "hearth: the system refused: Permission denied (x).\n"),
    ],
)  # fmt: skip
def test_what_stops_it_is_one_sentence(error: BaseException, code: int, said: str) -> None:
    assert ended(error) == (code, said)


def test_a_fault_of_our_own_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        ended(ZeroDivisionError())
