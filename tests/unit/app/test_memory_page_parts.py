"""Around the memory page: lengths from the store, marks in the list, cards, toasts, the frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QLineEdit, QWidget

from app.chat.conversation import ReplyContent, ReplyFacts, TurnState
from app.chat.storage.conversations import ConversationEntry
from app.chat.store import Store, open_store
from app.errors import MemoryRefusal
from app.library.loaded import ModelPhase, ModelState
from app.look.icons import Icons
from app.look.theme import Look, Preference
from app.memory.cards import Mark
from app.memory.model import Told, memory_view
from app.pages.names import PageName
from app.panels.chat_list import ChatListModel, ListRole
from app.panels.dates import DateGroup
from app.panels.notices import context_words, model_notice
from app.widgets.toast import Toast, ToastFacts
from app.window import Window
from engine.protocol import ChatTier, StateFacts, Tier, Timings
from tests.helpers.fake_asks import memory_facts, states_kept
from tests.helpers.qt import application, left_of_qt, plain_font, settle
from tests.unit.app.conftest import Stage

GIB = 2**30

# Lengths -----------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "chats.sqlite").store as made:
        yield made


def replied(store: Store, chat: int, facts: ReplyFacts, parent: int | None = None) -> int:
    user = store.turns.add_user(chat, parent, "hi")
    reply = store.turns.begin_reply(chat, user.id, facts)
    store.turns.end_reply(reply.id, TurnState.WHOLE, ReplyContent(text="ho"), facts)
    return reply.id


def read_by(model: str, tokens: int, read_ms: float | None, resumed: int = 0) -> ReplyFacts:
    return ReplyFacts(
        model_name=model,
        prompt_tokens=tokens,
        resumed_tokens=resumed,
        completion_tokens=10,
        timings=Timings(prefill_ms=read_ms),
    )


def test_a_chat_is_as_long_as_its_newest_reply_left_it(store: Store) -> None:
    first, second, third = (store.conversations.create().id for _ in range(3))
    reply = replied(store, first, read_by("a", 100, 50))
    replied(store, first, read_by("a", 300, 50, resumed=290), parent=reply)
    replied(store, second, ReplyFacts(model_name="a"))
    store.turns.add_user(third, None, "no reply")
    assert store.lengths.read().tokens == {first: 310}


def test_the_speed_is_the_middle_of_what_a_model_has_really_read(store: Store) -> None:
    chat = store.conversations.create().id
    for facts in (
        read_by("a", 1000, 1000),
        read_by("a", 2000, 1000),
        read_by("a", 9000, 100, resumed=8990),
        read_by("a", 4000, 1000, resumed=1000),
        read_by("a", 5000, None),
        read_by("b", 640, 100),
    ):
        replied(store, chat, facts)
    found = store.lengths.read()
    assert found.speeds == {"a": 2000.0, "b": 6400.0}
    assert found.read_s(chat, "a") == found.tokens[chat] / 2000
    assert found.read_s(chat, "never seen") is None and found.read_s(99, "a") is None


# Marks -------------------------------------------------------------------------------------------


def test_every_mark_of_the_list_is_told_in_words_and_headings_have_none() -> None:
    application()
    owner = QObject()
    model = ChatListModel(owner)
    tiers: tuple[Tier, ...] = ("device", "host", "disk", "none")
    entries = tuple(ConversationEntry(n, f"Chat {n}", 0, 0, None, None) for n in range(5))
    model.show_groups((DateGroup("Today", entries),))
    told = {n: ChatTier(conversation=str(n), tier=tier) for n, tier in enumerate(tiers)}
    changes: list[int] = []
    model.dataChanged.connect(lambda *_: changes.append(1))
    for _ in range(2):
        model.show_tiers(MappingProxyType(told), gpu=True)
    model.show_answering(frozenset({0}))
    assert len(changes) == 2
    rows = [model.index(n) for n in range(1, 6)]
    assert [row.data(ListRole.TIER.value) for row in rows] == [*tiers, "none"]
    spoken = int(Qt.ItemDataRole.AccessibleTextRole)
    assert [row.data(spoken) for row in rows] == [
        "Chat 0, Answering",
        "Chat 1, Resumes from RAM in a moment",
        "Chat 2, Resumes from disk after a short read",
        "Chat 3, Text only: read again once",
        "Chat 4, Text only: read again once",
    ]
    tooltip = int(Qt.ItemDataRole.ToolTipRole)
    assert rows[1].data(tooltip) == "Chat 1\nResumes from RAM in a moment"
    assert model.index(0).data(spoken) == "Today" and model.index(0).data(tooltip) is None
    owner.deleteLater()
    settle()


# Ways out ----------------------------------------------------------------------------------------


class NotedModel:
    """Notes what is wanted of the model."""

    def __init__(self) -> None:
        self.wanted: list[str] = []

    def try_again(self) -> None:
        self.wanted.append("again")

    def shorten(self, context_tokens: int) -> None:
        self.wanted.append(f"shorten {context_tokens}")

    def load_anyway(self) -> None:
        self.wanted.append("anyway")


@pytest.mark.parametrize(
    ("refusal", "title", "buttons"),
    [
        (
            MemoryRefusal(14 * GIB, 9 * GIB, "gpu1", 0, 16_384),
            "Gemma does not fit on GPU 1",
            ["Use 16k context", "Choose a smaller file", "Load anyway"],
        ),
        (
            MemoryRefusal(14 * GIB, 9 * GIB, "ram", 0, 1_300),
            "Gemma does not fit into memory",
            ["Use 1,300-token context", "Choose a smaller file", "Load anyway"],
        ),
        (
            MemoryRefusal(14 * GIB, 9 * GIB),
            "Gemma does not fit into memory",
            ["Choose a smaller file", "Load anyway"],
        ),
    ],
)
def test_a_refused_model_has_its_ways_out(
    refusal: MemoryRefusal, title: str, buttons: list[str]
) -> None:
    model = NotedModel()
    state = ModelState(ModelPhase.FAILED, "Gemma", sentence="Needs it.", refusal=refusal)
    facts = model_notice(state, lambda: model.wanted.append("choose"), model)
    assert (facts.title, facts.sentence) == (title, "Needs it.")
    assert [choice.text for choice in facts.choices] == buttons
    assert [choice.quiet for choice in facts.choices] == [False] * (len(buttons) - 1) + [True]
    for choice in facts.choices:
        choice.run()
    ways = [f"shorten {refusal.fitting_context_tokens}", "choose", "anyway"]
    assert model.wanted == ways[3 - len(buttons) :]


def test_other_states_without_a_model_have_ways_on_too() -> None:
    model = NotedModel()
    for phase, choices in (
        (ModelPhase.ABSENT, ["Choose a model file"]),
        (ModelPhase.UNLOADED, ["Load it now"]),
        (ModelPhase.FAILED, ["Try again", "Choose another file"]),
    ):
        facts = model_notice(ModelState(phase, "Gemma"), lambda: None, model)
        assert [choice.text for choice in facts.choices] == choices
        assert facts.calm is (phase is not ModelPhase.FAILED)


def test_a_context_on_a_button_is_never_more_than_it_is() -> None:
    assert [context_words(n) for n in (1024, 16_384, 131_072)] == ["1k", "16k", "128k"]
    assert [context_words(n) for n in (512, 1_536, 16_385)] == [
        "512 tokens",
        "1,536 tokens",
        "16,385 tokens",
    ]


# Small parts -------------------------------------------------------------------------------------


def test_a_toast_may_have_nothing_to_undo(stage: Stage) -> None:
    toast = Toast(stage.look, stage.icons, stage.window)
    done: list[str] = []
    toast.tell(ToastFacts("warn", "That did not work", "The disk is full."))
    assert toast.isVisible() and not toast.button.isVisible()
    toast.grab()
    toast.undo()
    assert not toast.isVisible()
    toast.tell(ToastFacts("trash", "Moved", "x", "Undo", lambda: done.append("undone")))
    assert toast.button.isVisible()
    toast.undo()
    assert done == ["undone"]


@pytest.fixture
def window() -> Iterator[Window]:
    look = Look(application(), Preference.LIGHT, plain_font())
    made = Window(look, Icons())
    made.resize(1280, 800)
    made.show()
    made.memory.show_view(memory_view(_told(), 1000.0))
    made.memory.head.offer("Gemma")
    made.show_page(PageName.MEMORY)
    settle()
    yield made
    made.close()
    made.deleteLater()
    look.deleteLater()
    assert left_of_qt() == []


def _told() -> Told:
    kept = StateFacts(conversation="1", model="m", tokens=9, bytes=9, own_bytes=9, tier="disk")
    return Told(there=True, memory=memory_facts(), states=states_kept(kept))


def test_the_page_lies_where_the_chat_was_at_every_width(window: Window) -> None:
    assert window.memory.geometry().getRect() == (264, 0, 1016, 800)
    for width in (1280, 900, 899, 480):
        window.resize(width, 600)
        settle()
        left = window.sidebar.width() if window.sidebar.isVisible() else 0
        assert window.memory.geometry().getRect() == (left, 0, width - left, 600)
    assert window.memory.head.findChild(QAbstractButton) is not None
    window.show_page(PageName.CHAT)
    assert window.bar.isVisible() and window.page.isVisible() and not window.memory.isVisible()


def test_every_control_of_the_page_has_a_name_and_can_be_hit(window: Window) -> None:
    kinds = (QAbstractButton, QAbstractItemView, QLineEdit)
    shown = [w for w in window.findChildren(QWidget) if isinstance(w, kinds) and w.isVisible()]
    assert [type(w).__name__ for w in shown if not w.accessibleName() and not _text(w)] == []
    buttons = [w for w in shown if isinstance(w, QAbstractButton)]
    assert [b.text() for b in buttons if min(b.width(), b.height()) < 24] == []


def _text(widget: QWidget) -> str:
    return widget.text() if isinstance(widget, QAbstractButton) else ""


def test_tab_goes_through_the_page_from_its_head_to_its_rows(window: Window) -> None:
    page = window.memory
    page.head.action.setFocus()
    seen = [page.head.action]
    for _ in range(3):
        window.focusNextChild()
        seen.append(window.focusWidget())  # type: ignore[arg-type]
    assert seen[1:] == [page.kept.clear, page.kept.filter.line, page.kept.table]


def test_marks_of_cards_are_icons_that_exist() -> None:
    application()
    icons = Icons()
    for name in [mark.value for mark in Mark if mark.value] + ["gpu", "chip", "disk", "pin"]:
        assert not icons.pixmap(name, 16, "#000000", 1.0).isNull()
