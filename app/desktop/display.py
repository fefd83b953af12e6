"""Whether there is a display to open a window on, told before Qt would abort. No Qt."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

NO_DISPLAY: Final = "There is no display to open a window on; `hearth ask` answers in the terminal."
NEEDS_NONE: Final = frozenset({"offscreen", "minimal", "vnc", "linuxfb", "eglfs", "minimalegl"})


def has_display(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether Qt would find a display.

    Args:
        environment: the process's environment.
        platform: ``sys.platform``; only Linux and its like can lack a display.
    """
    if platform in ("win32", "darwin"):
        return True
    chosen = environment.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if chosen in NEEDS_NONE:
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))
