"""The desk asks when something happened and while somebody looks, never twice at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject

from app.link.bridge import EngineBridge
from app.link.events import EngineDied, EngineReady, TiersChanged
from app.link.outcome import ProcessOutcome
from app.memory import desk as desk_module
from app.memory.desk import MemoryDesk
from app.memory.model import MemoryView
from app.memory.rows import KnownChat
from engine.protocol import ChatTiers, StateFacts, Welcome
from tests.helpers.fake_asks import FakeAsks, states_kept
from tests.helpers.qt import application, run_for, settle

READY = EngineReady(Welcome(version=1, engine="x", pid=1, device="cpu"), 0)
DIED = EngineDied(ProcessOutcome(1, 0, None, 1.0, ready=True, asked=False), 0.2)
ONCE = ["memory", "states"]
KEPT = StateFacts(
    conversation="1", model="m", tokens=300, bytes=5, own_bytes=5, tier="disk", used_s=900.0
)


class Desk:
    """A desk over noted questions."""

    def __init__(self, *, ready: bool = True) -> None:
        application()
        self.owner = QObject()
        self.asks = FakeAsks(ready=ready)
        self.bridge = EngineBridge(self.owner)
        self.now_s = 1000.0
        self.desk = MemoryDesk(self.asks, self.bridge, self.owner, lambda: self.now_s)
        self.views: list[MemoryView] = []
        self.failures: list[str] = []
        self.desk.changed.connect(self.views.append)
        self.desk.failed.connect(self.failures.append)

    def answered(self) -> None:
        self.asks.answer(states_kept(KEPT))
        settle()


@pytest.fixture
def made() -> Iterator[Desk]:
    found = Desk()
    yield found
    found.desk.close()
    found.owner.deleteLater()
    settle()


def test_questions_that_come_while_one_is_open_become_one_more(made: Desk) -> None:
    for _ in range(5):
        made.desk.refresh()
    assert made.asks.asked == ONCE
    made.answered()
    assert made.asks.asked == ONCE * 2
    made.answered()
    made.answered()
    assert made.asks.asked == ONCE * 2


def test_it_asks_again_and_again_only_while_somebody_looks(
    made: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_module, "PERIOD_MS", 20)
    quick = MemoryDesk(made.asks, made.bridge, made.owner)
    run_for(0.1)
    assert made.asks.asked == []
    quick.look(True)
    assert made.asks.asked == ONCE
    for _ in range(3):
        made.answered()
        run_for(0.05)
    assert len(made.asks.asked) >= 6
    quick.look(False)
    made.answered()
    made.answered()
    before = len(made.asks.asked)
    run_for(0.1)
    assert len(made.asks.asked) == before


def test_what_is_answered_is_shown_once_and_the_same_answer_changes_nothing(made: Desk) -> None:
    made.desk.show_chats((KnownChat(1, "1", "Letter", 900.0),))
    made.desk.refresh()
    made.answered()
    assert [row.title for row in made.desk.view.rows] == ["Letter"]
    assert [card.title for card in made.desk.view.cards] == ["RAM", "Disk"]
    count = len(made.views)
    made.desk.refresh()
    made.answered()
    assert len(made.views) == count
    made.now_s += 120
    made.desk.refresh()
    made.answered()
    assert made.desk.view.rows[0].used == "3 min ago" and len(made.views) > count


def test_events_ask_anew_and_an_ended_reply_too_but_not_one_that_begins(made: Desk) -> None:
    made.bridge.on_event(TiersChanged(ChatTiers(chats=())))
    settle()
    assert made.asks.asked == ONCE
    made.answered()
    made.desk.show_answering(frozenset({1}))
    assert made.asks.asked == ONCE
    made.desk.show_answering(frozenset())
    assert made.asks.asked == ONCE * 2


def test_a_dead_engine_has_no_figures_and_the_next_one_is_asked(made: Desk) -> None:
    made.desk.refresh()
    made.answered()
    assert made.desk.view.there and made.desk.view.cards
    made.desk.refresh()
    made.asks.ready = False
    made.asks.fail("engine-died")
    made.bridge.on_event(DIED)
    settle()
    assert made.desk.view == MemoryView()
    made.desk.refresh()
    made.asks.ready = True
    made.bridge.on_event(READY)
    settle()
    made.answered()
    assert made.desk.view.there and made.desk.view.cards
    assert made.failures == []


def test_pinning_and_deleting_are_told_and_what_is_left_is_shown_at_once(made: Desk) -> None:
    made.desk.refresh()
    made.answered()
    assert made.desk.view.rows
    made.desk.pin("1", True)
    made.desk.clear(("1",))
    made.desk.clear(None)
    assert made.asks.asked[2:] == ["pin 1 True", "clear 1", "clear all"]
    made.asks.answer()
    settle()
    assert made.desk.view.rows == ()


def test_what_was_not_pinned_is_told_with_its_sentence(made: Desk) -> None:
    made.desk.pin("1", True)
    made.asks.fail("internal")
    settle()
    made.asks.ready = False
    made.desk.clear(None)
    assert made.failures == ["It is not allowed.", "The engine is not there."]


def test_without_an_engine_nothing_is_asked_and_nothing_fails() -> None:
    found = Desk(ready=False)
    found.desk.refresh()
    found.desk.look(True)
    found.desk.look(False)
    assert (found.asks.asked, found.failures, found.views) == ([], [], [])
    found.owner.deleteLater()
    settle()
