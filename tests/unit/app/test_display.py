"""A missing display is seen before Qt would abort; a start without one ends with code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.main import main
from app.desktop.display import has_display


def test_linux_has_a_display_with_x_wayland_or_a_platform_that_needs_none() -> None:
    assert has_display({"DISPLAY": ":0"}, "linux")
    assert has_display({"WAYLAND_DISPLAY": "wayland-0"}, "linux")
    assert has_display({"QT_QPA_PLATFORM": "offscreen"}, "linux")
    assert has_display({"QT_QPA_PLATFORM": "vnc:port=5901"}, "linux")
    assert not has_display({}, "linux")
    assert not has_display({"DISPLAY": "", "QT_QPA_PLATFORM": "xcb"}, "linux")


def test_windows_and_macos_always_have_one() -> None:
    assert has_display({}, "win32")
    assert has_display({}, "darwin")


def test_a_start_without_a_display_points_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert main(["--data-directory", str(tmp_path / "data")]) == 2
    assert "hearth ask" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
