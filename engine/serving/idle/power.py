"""Whether the machine runs on its battery, where nothing is computed that nobody asked for."""

from __future__ import annotations

import psutil


def on_battery() -> bool:
    """Whether it does; False where there is no battery or the system does not tell."""
    read = getattr(psutil, "sensors_battery", None)
    found = None if read is None else read()
    return found is not None and found.power_plugged is False
