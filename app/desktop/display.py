"""Whether there is a display to open a window on, told before Qt would abort. No Qt."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Final

NO_DISPLAY: Final = "There is no display to open a window on; `hearth ask` answers in the terminal."
NEEDS_NONE: Final = frozenset({"offscreen", "minimal", "vnc", "linuxfb", "eglfs", "minimalegl"})
LOCAL: Final = re.compile(r"(?:unix)?:(\d+)(?:\.\d+)?")
WAIT_S: Final = 1.0


def has_display(
    environment: Mapping[str, str],
    platform: str = sys.platform,
    *,
    listens: Callable[[str], bool] | None = None,
) -> bool:
    """Whether Qt would find a display.

    Args:
        environment: the process's environment.
        platform: ``sys.platform``; only Linux and its like can lack a display.
        listens: whether a server answers at the path of a Unix socket; None asks the system.
    """
    if platform in ("win32", "darwin"):
        return True
    chosen = environment.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if chosen in NEEDS_NONE:
        return True
    answers = listens or socket_listens
    return _wayland(environment, answers) or _x11(environment.get("DISPLAY", ""), answers)


def socket_listens(path: str) -> bool:
    """Whether something accepts connections at a Unix socket, also at its abstract twin."""
    for address in (path, f"\0{path}"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(WAIT_S)
            probe.connect(address)
            return True
    return False


def _wayland(environment: Mapping[str, str], listens: Callable[[str], bool]) -> bool:
    name = environment.get("WAYLAND_DISPLAY", "")
    if not name:
        return False
    return listens(os.path.join(environment.get("XDG_RUNTIME_DIR", ""), name))  # noqa: PTH118


def _x11(display: str, listens: Callable[[str], bool]) -> bool:
    """A display on another machine is taken at its word."""
    local = LOCAL.fullmatch(display)
    return bool(display) if local is None else listens(f"/tmp/.X11-unix/X{local[1]}")
