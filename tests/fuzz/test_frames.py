"""The fixed-seed part of ``tests.fuzz.frames``; the long run is made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.frames import MUTATIONS, against_codec, against_engine, against_processes


def test_twenty_thousand_mutants_never_break_the_codec() -> None:
    outcome = against_codec(20_000, seed=1)
    assert outcome.seen.total() == 20_000
    assert {what.split(" ")[0] for what in outcome.seen} == set(MUTATIONS)
    assert sum(count for what, count in outcome.seen.items() if what.endswith("read")) > 100


@pytest.mark.usefixtures("caplog")
def test_mutants_never_break_hang_or_leak_a_live_engine(tmp_path: Path) -> None:
    outcome = against_engine(500, seed=2, folder=tmp_path)
    codes = {what.split(" ", 1)[1] for what in outcome.seen}
    assert codes == {"code 0", "code 3"}


def test_an_engine_process_closes_cleanly_on_mutants(tmp_path: Path) -> None:
    assert against_processes(4, seed=3, folder=tmp_path).seen.total() == 4
