"""How the memory page writes amounts and times. Pure.

Memory is told in GiB and MiB, what lies on a disk in GB and MB, as the system's own tools do.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

GIBIBYTE: Final = 2**30
MEBIBYTE: Final = 2**20
GIGABYTE: Final = 10**9
MEGABYTE: Final = 10**6
SMALLEST_GIB: Final = 0.05
"""Below this a figure in GiB would read 0.0."""

MINUTE_S: Final = 60
HOUR_S: Final = 3600
RECENT_DAYS: Final = 14
YEAR_DAYS: Final = 300


def gib(count: int) -> str:
    """A figure of a legend: ``5.3`` stands for GiB, what is too small for that has its unit."""
    if count == 0 or count / GIBIBYTE >= SMALLEST_GIB:
        return f"{count / GIBIBYTE:.1f}"
    return f"{max(1, round(count / MEBIBYTE))} MiB"


def memory_size(count: int) -> str:
    """Bytes in memory: ``324 MiB``, from one GiB on ``1.2 GiB``."""
    if count >= GIBIBYTE:
        return f"{count / GIBIBYTE:.1f} GiB"
    return f"{_at_least_one(count, MEBIBYTE)} MiB"


def gb(count: int) -> str:
    """A figure of the disk's legend: ``14.2`` stands for GB, what is too small has its unit."""
    if count == 0 or count / GIGABYTE >= SMALLEST_GIB:
        return f"{count / GIGABYTE:.1f}"
    return f"{_at_least_one(count, MEGABYTE)} MB"


def disk_size(count: int) -> str:
    """Bytes on a disk: ``514 MB``, from one GB on ``1.2 GB``."""
    if count >= GIGABYTE:
        return f"{count / GIGABYTE:.1f} GB"
    return f"{_at_least_one(count, MEGABYTE)} MB"


def whole_gb(count: int) -> str:
    """A large amount on a disk: ``214 GB``; below 10 GB with one decimal."""
    number = count / GIGABYTE
    return f"{number:,.0f} GB" if number >= 10 else f"{number:.1f} GB"


def counted(count: int, noun: str) -> str:
    """A number and its noun: ``1 chat``, ``1,204 chats``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def seconds(duration_s: float) -> str:
    """A short time: ``0.4 s``, ``12 s``, ``3 min``."""
    if duration_s < 1:
        return f"{max(0.1, duration_s):.1f} s"
    if duration_s < 100:
        return f"{duration_s:.0f} s"
    return f"{duration_s / MINUTE_S:.0f} min"


def last_used(used_s: float, now_s: float) -> str:
    """When something was used last, by the local calendar: ``20 min ago``, ``yesterday``.

    Args:
        used_s: seconds since 1970; 0 where it is not known.
        now_s: the present on the same clock.
    """
    if used_s <= 0:
        return ""
    passed = now_s - used_s
    used, now = datetime.fromtimestamp(used_s), datetime.fromtimestamp(now_s)
    days = (now.date() - used.date()) // timedelta(days=1)
    if passed < MINUTE_S:
        return "now"
    if passed < HOUR_S:
        return f"{passed // MINUTE_S:.0f} min ago"
    if days == 0:
        return f"{passed // HOUR_S:.0f} h ago"
    return _day(used, days) if days > RECENT_DAYS else _days_ago(days)


def _days_ago(days: int) -> str:
    return "yesterday" if days == 1 else f"{days} days ago"


def _day(used: datetime, days: int) -> str:
    return f"{used.day} {used:%b}" if days < YEAR_DAYS else f"{used.day} {used:%b %Y}"


def _at_least_one(count: int, unit: int) -> int:
    return max(1, round(count / unit)) if count else 0
