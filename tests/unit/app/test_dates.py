"""Chats stand under the day they were last used."""

from __future__ import annotations

from datetime import date, datetime

from app.chat.storage.conversations import ConversationEntry
from app.panels.dates import group_by_date

TODAY = date(2026, 3, 2)


def entry(number: int, *when: int) -> ConversationEntry:
    used = int(datetime(*when).timestamp() * 1000)  # type: ignore[arg-type]
    return ConversationEntry(number, f"chat {number}", used, used, None, None)


def test_days_weeks_months_and_years_have_their_headings() -> None:
    entries = (
        entry(1, 2026, 3, 2, 23, 59),
        entry(2, 2026, 3, 2, 0, 1),
        entry(3, 2026, 3, 1, 23, 59),
        entry(4, 2026, 2, 23, 12),
        entry(5, 2026, 2, 22, 12),
        entry(6, 2026, 1, 1, 0, 0),
        entry(7, 2025, 12, 31, 23, 0),
    )
    found = {g.heading: [e.id for e in g.entries] for g in group_by_date(entries, TODAY)}
    assert found == {
        "Today": [1, 2],
        "Yesterday": [3],
        "Previous 7 days": [4],
        "February": [5],
        "January": [6],
        "December 2025": [7],
    }


def test_a_clock_that_went_back_leaves_a_chat_under_today() -> None:
    (group,) = group_by_date((entry(1, 2026, 3, 5, 8),), TODAY)
    assert group.heading == "Today"


def test_no_chats_make_no_headings() -> None:
    assert group_by_date((), TODAY) == ()
