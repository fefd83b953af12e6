"""A model that stopped the engine twice is not loaded at the next start, only by a person."""

from __future__ import annotations

from pathlib import Path

from app.directories import directories
from app.library.loaded import ModelPhase
from app.link.deaths.crash_guard import CrashGuard
from tests.helpers.qt import wait_until
from tests.helpers.window import TestWindow


def test_the_window_starts_without_it_and_loads_it_when_told_to(tmp_path: Path) -> None:
    window = TestWindow(tmp_path)
    try:
        model = directories(tmp_path).models / "SmolLM2-135M-Instruct.Q4_1.gguf"
        guard = CrashGuard(directories(tmp_path).crash_file)
        guard.count(str(model))
        guard.count(str(model))
        window.start()
        loaded = window.whole.workshop.model
        wait_until(lambda: loaded.state.phase is ModelPhase.FAILED)
        assert "stopped the engine twice" in loaded.state.sentence
        loaded.try_again()
        wait_until(lambda: loaded.state.phase is ModelPhase.READY)
    finally:
        window.close()


def test_one_death_is_no_reason_to_hold_it_back(tmp_path: Path) -> None:
    window = TestWindow(tmp_path)
    try:
        model = directories(tmp_path).models / "SmolLM2-135M-Instruct.Q4_1.gguf"
        CrashGuard(directories(tmp_path).crash_file).count(str(model))
        window.start()
        wait_until(lambda: window.whole.workshop.model.state.phase is ModelPhase.READY)
    finally:
        window.close()
