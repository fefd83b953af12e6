"""A missing display is seen before Qt would abort; a start without one ends with code 2."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from app.cli.main import main
from app.desktop.display import has_display, socket_listens


def everything(_path: str) -> bool:
    return True


def nothing(_path: str) -> bool:
    return False


def test_linux_has_a_display_with_x_wayland_or_a_platform_that_needs_none() -> None:
    for environment in (
        {"DISPLAY": ":0"},
        {"DISPLAY": "unix:1.0"},
        {"WAYLAND_DISPLAY": "wayland-0", "XDG_RUNTIME_DIR": "/run/user/1000"},
    ):
        assert has_display(environment, "linux", listens=everything)
        assert not has_display(environment, "linux", listens=nothing)
    for environment in (
        {"QT_QPA_PLATFORM": "offscreen"},
        {"QT_QPA_PLATFORM": "vnc:port=5901"},
        {"DISPLAY": "elsewhere:0"},
    ):
        assert has_display(environment, "linux", listens=nothing)
    assert not has_display({}, "linux", listens=everything)
    assert not has_display({"DISPLAY": "", "QT_QPA_PLATFORM": "xcb"}, "linux", listens=everything)


def test_the_sockets_of_both_systems_are_asked_for() -> None:
    asked: list[str] = []

    def note(path: str) -> bool:
        asked.append(path)
        return False

    environment = {"DISPLAY": ":7.1", "WAYLAND_DISPLAY": "wayland-1", "XDG_RUNTIME_DIR": "/run/x"}
    has_display(environment, "linux", listens=note)
    assert asked == ["/run/x/wayland-1", "/tmp/.X11-unix/X7"]


def test_a_socket_file_that_nobody_listens_at_is_no_display(tmp_path: Path) -> None:
    dead, live = str(tmp_path / "dead"), str(tmp_path / "live")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(dead)
    assert Path(dead).exists() and not socket_listens(dead)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(live)
        server.listen()
        assert socket_listens(live)


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
