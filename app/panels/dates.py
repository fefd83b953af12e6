"""Conversations grouped by the day they were last used. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from app.chat.storage.conversations import ConversationEntry


@dataclass(frozen=True, slots=True)
class DateGroup:
    """Conversations under one heading, newest first."""

    heading: str
    entries: tuple[ConversationEntry, ...]


def group_by_date(entries: Iterable[ConversationEntry], today: date) -> tuple[DateGroup, ...]:
    """Today, Yesterday, Previous 7 days, then one group a month. ``entries`` come newest first."""
    groups: dict[str, list[ConversationEntry]] = {}
    for entry in entries:
        groups.setdefault(_heading(entry, today), []).append(entry)
    return tuple(DateGroup(heading, tuple(found)) for heading, found in groups.items())


def _heading(entry: ConversationEntry, today: date) -> str:
    day = datetime.fromtimestamp(entry.updated_ms / 1000).date()
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day >= today - timedelta(days=7):
        return "Previous 7 days"
    return f"{day:%B}" if day.year == today.year else f"{day:%B %Y}"
