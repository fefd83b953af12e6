"""Conversations grouped by the day they were last used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from PySide6.QtCore import QDate, QLocale

from app.chat.storage.conversations import ConversationEntry
from app.language.words import tr


@dataclass(frozen=True, slots=True)
class DateGroup:
    """Conversations under one heading, newest first."""

    heading: str
    entries: tuple[ConversationEntry, ...]


def group_by_date(entries: Iterable[ConversationEntry], today: date) -> tuple[DateGroup, ...]:
    """Pinned, Today, Yesterday, Previous 7 days, then one group a month; newest first in each.

    Args:
        entries: the newest first.
    """
    groups: dict[str, list[ConversationEntry]] = {}
    ordered = sorted(entries, key=lambda entry: entry.pinned_ms is None)
    for entry in ordered:
        heading = _heading(entry, today) if entry.pinned_ms is None else tr("Pinned")
        groups.setdefault(heading, []).append(entry)
    return tuple(DateGroup(heading, tuple(found)) for heading, found in groups.items())


def _heading(entry: ConversationEntry, today: date) -> str:
    day = datetime.fromtimestamp(entry.updated_ms / 1000).date()
    if day >= today:
        return tr("Today")
    if day == today - timedelta(days=1):
        return tr("Yesterday")
    if day >= today - timedelta(days=7):
        return tr("Previous 7 days")
    return QLocale().toString(
        QDate(day.year, day.month, day.day), "MMMM" if day.year == today.year else "MMMM yyyy"
    )
