"""The memory page with keys and pointer: rows, buttons, narrow windows, empty states, the bar."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QMouseEvent, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.look.theme import Preference
from app.memory.cards import Part, PartKind
from app.memory.model import Told, memory_view
from app.memory.rows import KeptRow, KnownChat, Moment, kept_rows
from app.memory.view.bar import GAP, LEAST, paint_memory_bar, part_boxes
from app.memory.view.kept_model import COLUMNS, TableColumn
from app.memory.view.page import MemoryPage
from app.panels.question import Question, QuestionFacts
from app.widgets.state_dot import DOT, paint_state_dot
from engine.protocol import PoolFacts, StateFacts, Tier
from tests.helpers.fake_asks import memory_facts, states_kept
from tests.helpers.qt import hover, press, settle
from tests.unit.app.conftest import Stage

NOW = 1_000_000.0
CHATS = (
    KnownChat(1, "1", "Gas meter readings", NOW - 30),
    KnownChat(2, "2", "Cover letter", NOW - 90_000),
    KnownChat(3, "3", "Birthday speech", NOW - 500_000, tokens=5210, read_s=2.2),
)
STATES = (
    StateFacts(
        conversation="1",
        model="m",
        tokens=8768,
        bytes=2**28,
        own_bytes=1,
        tier="device",
        used_s=NOW,
    ),
    StateFacts(
        conversation="2",
        model="m",
        tokens=4096,
        bytes=10**8,
        own_bytes=1,
        tier="disk",
        pinned=True,
        used_s=NOW - 90_000,
    ),
)


def told(*states: StateFacts, chats: tuple[KnownChat, ...] = CHATS) -> Told:
    return Told(there=True, memory=memory_facts(), states=states_kept(*states), chats=chats)


@pytest.fixture
def page(stage: Stage) -> MemoryPage:
    made = MemoryPage(stage.look, stage.icons, stage.window)
    stage.window.resize(1280, 800)
    made.setGeometry(264, 0, 1016, 800)
    made.show()
    made.show_view(memory_view(told(*STATES), NOW))
    settle()
    return made


def titles(page: MemoryPage) -> list[str]:
    return [row.title for row in page.kept.table.kept.rows]


def select(page: MemoryPage, row: int) -> None:
    table = page.kept.table
    table.setFocus()
    table.setCurrentIndex(table.kept.index(row, COLUMNS.index(TableColumn.CHAT)))


def heard(signal: object) -> list[KeptRow]:
    found: list[KeptRow] = []
    signal.connect(found.append)  # type: ignore[attr-defined]
    return found


def click(page: MemoryPage, row: int, box: Callable[[QRectF], QRectF]) -> None:
    table = page.kept.table
    cell = QRectF(table.visualRect(table.kept.index(row, len(COLUMNS) - 1)))
    QTest.mouseClick(
        table.viewport(),
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
        box(cell).center().toPoint(),
    )


# Places ------------------------------------------------------------------------------------------


def test_proportions_are_those_of_the_reference(page: MemoryPage) -> None:
    first, second = page.cards
    assert (first.x(), first.mapTo(page, first.rect().topLeft()).y()) == (24, 70)
    assert second.geometry().right() + 1 == 1016 - 24
    assert second.x() - (first.geometry().right() + 1) == 14
    table = page.kept.table
    assert table.width() == 968 and table.rowHeight(0) == 36 and table.head.height() == 36
    assert page.kept.filter.geometry().getRect() == (748, 0, 220, 32)


def test_a_narrow_page_has_fewer_columns_and_no_part_outside_it(page: MemoryPage) -> None:
    for width in (1016, 700, 560, 480, 320):
        page.resize(width, 600)
        settle()
        for card in page.cards:
            assert card.x() >= 24 and card.geometry().right() < width - 23
        table = page.kept.table
        assert sum(table.columnWidth(n) for n in range(len(COLUMNS))) == table.viewport().width()
    assert page.kept.table.isColumnHidden(COLUMNS.index(TableColumn.MODEL))
    assert not page.kept.table.isColumnHidden(COLUMNS.index(TableColumn.CHAT))
    page.resize(1016, 600)
    settle()
    assert not page.kept.table.isColumnHidden(COLUMNS.index(TableColumn.MODEL))


def test_cards_come_and_go_with_their_pools(page: MemoryPage) -> None:
    gpu = PoolFacts(name="gpu0", capacity_bytes=8, free_bytes=8, total_bytes=8)
    more = memory_facts()
    with_gpu = Told(
        there=True,
        memory=type(more)(request=1, pools=(gpu, *more.pools)),
        states=states_kept(),
    )
    page.show_view(memory_view(with_gpu, NOW))
    assert [card.accessibleName() for card in page.cards] == ["GPU 0", "RAM", "Disk"]
    page.show_view(memory_view(told(), NOW))
    assert [card.accessibleName() for card in page.cards] == ["RAM", "Disk"]
    assert all("of" in card.accessibleDescription() for card in page.cards)


# Rows --------------------------------------------------------------------------------------------


def test_keys_act_on_the_row_that_is_current(page: MemoryPage) -> None:
    table = page.kept.table
    opened, pinned, deleted = (
        heard(signal) for signal in (table.open_wanted, table.pin_wanted, table.delete_wanted)
    )
    select(page, 0)
    press(table, Qt.Key.Key_Return)
    press(table, Qt.Key.Key_P, "p")
    press(table, Qt.Key.Key_Down)
    press(table, Qt.Key.Key_Delete)
    assert [row.title for row in opened] == ["Gas meter readings"]
    assert [row.title for row in pinned] == ["Gas meter readings"]
    assert [row.title for row in deleted] == ["Cover letter"]


def test_a_chat_that_is_only_text_can_be_opened_but_neither_pinned_nor_deleted(
    page: MemoryPage,
) -> None:
    table = page.kept.table
    opened, pinned, deleted = (
        heard(signal) for signal in (table.open_wanted, table.pin_wanted, table.delete_wanted)
    )
    select(page, 2)
    for key in (Qt.Key.Key_P, Qt.Key.Key_Delete, Qt.Key.Key_Enter):
        press(table, key)
    assert (len(opened), pinned, deleted) == (1, [], [])


def test_keys_with_control_are_not_taken_for_letters(page: MemoryPage) -> None:
    pinned = heard(page.kept.table.pin_wanted)
    select(page, 0)
    press(page.kept.table, Qt.Key.Key_P, "", Qt.KeyboardModifier.ControlModifier)
    assert pinned == []


def test_the_buttons_of_a_row_pin_and_ask_to_delete(page: MemoryPage) -> None:
    table = page.kept.table
    pinned, deleted = heard(table.pin_wanted), heard(table.delete_wanted)
    delegate = table.itemDelegate()
    hover(table, 0)
    assert delegate.hovered == 0  # type: ignore[attr-defined]
    click(page, 0, delegate.pin_box)  # type: ignore[attr-defined]
    click(page, 1, delegate.more_box)  # type: ignore[attr-defined]
    assert [row.title for row in pinned] == ["Gas meter readings"]
    assert [row.title for row in deleted] == ["Cover letter"]
    QApplication.sendEvent(table.viewport(), QEvent(QEvent.Type.Leave))
    assert delegate.hovered == -1  # type: ignore[attr-defined]


def test_buttons_say_what_they_do_and_by_which_key(page: MemoryPage) -> None:
    table = page.kept.table
    delegate = table.itemDelegate()
    words = []
    for row in range(3):
        cell = QRectF(table.visualRect(table.kept.index(row, len(COLUMNS) - 1)))
        boxes = (delegate.pin_box(cell), delegate.more_box(cell))  # type: ignore[attr-defined]
        words.append([table.button_words(box.center().toPoint()) for box in boxes])
    assert words == [
        ["Pin: it never goes by itself (P)", "Delete what is kept (Del)"],
        ["Unpin (P)", "Delete what is kept (Del)"],
        ["", ""],
    ]
    assert table.button_words(table.visualRect(table.kept.index(0, 0)).center()) == ""


def test_the_menu_of_a_row_offers_what_can_be_done_with_it(page: MemoryPage) -> None:
    table = page.kept.table
    opened, pinned, deleted = (
        heard(signal) for signal in (table.open_wanted, table.pin_wanted, table.delete_wanted)
    )
    offers = []
    for row in table.kept.rows[1:]:
        menu = table.menu_of(row)
        offers.append([action.text() for action in menu.actions()])
        for action in menu.actions():
            action.trigger()
        menu.deleteLater()
    assert offers == [["Open chat", "Unpin", "Delete what is kept …"], ["Open chat"]]
    assert (len(opened), len(pinned), len(deleted)) == (2, 1, 1)
    (gone,) = kept_rows((STATES[0],), (), Moment(NOW))
    menu = table.menu_of(gone)
    assert [action.isEnabled() for action in menu.actions()] == [False, True, True]
    menu.deleteLater()


def test_the_current_row_stays_where_it_is_when_figures_change_and_when_rows_move(
    page: MemoryPage,
) -> None:
    select(page, 1)
    page.show_view(memory_view(told(*STATES), NOW + 600))
    current = page.kept.table.current_row()
    assert current is not None and current.title == "Cover letter"
    others = tuple(KnownChat(n, str(n), f"Chat {n}", NOW) for n in range(10, 30))
    states = tuple(
        StateFacts(conversation=str(n), model="m", tokens=9, bytes=9, own_bytes=1, tier="device")
        for n in range(10, 30)
    )
    page.show_view(memory_view(told(*states, *STATES, chats=(*CHATS, *others)), NOW))
    current = page.kept.table.current_row()
    assert current is not None and current.title == "Cover letter"
    assert page.kept.table.currentIndex().row() > 15
    page.show_view(memory_view(told(STATES[0], chats=CHATS[:1]), NOW))
    assert titles(page) == ["Gas meter readings"]


def test_a_row_far_below_is_scrolled_into_sight_by_keys(page: MemoryPage) -> None:
    many = tuple(KnownChat(n, str(n), f"Chat {n:03}", NOW - n) for n in range(200))
    page.show_view(memory_view(told(chats=many), NOW))
    select(page, 0)
    for _ in range(150):
        press(page.kept.table, Qt.Key.Key_Down)
    table = page.kept.table
    box = table.visualRect(table.currentIndex())
    middle = table.viewport().mapTo(page, box.center())
    assert page.head.height() < middle.y() < page.height()


def test_the_filter_narrows_and_says_when_nothing_is_left(page: MemoryPage) -> None:
    field = page.kept.filter.line
    field.setText("letter")
    assert titles(page) == ["Cover letter"]
    field.setText("zebra")
    assert titles(page) == [] and page.kept.table.isHidden()
    assert "No chat has “zebra”" in page.kept.accessibleDescription()
    press(field, Qt.Key.Key_Escape)
    assert field.text() == "" and len(titles(page)) == 3


def test_a_click_on_a_head_sorts_and_a_second_one_turns_it_round(page: MemoryPage) -> None:
    section = COLUMNS.index(TableColumn.CHAT)
    seen = []
    for _ in range(2):
        page.kept.table.head.sectionClicked.emit(section)
        seen.append(titles(page))
    assert seen[0] == ["Birthday speech", "Cover letter", "Gas meter readings"]
    assert seen[1] == seen[0][::-1]
    page.kept.table.head.sectionClicked.emit(len(COLUMNS) - 1)
    assert titles(page) == seen[1]


def test_a_chat_that_is_only_text_tells_its_figures_in_one_piece(page: MemoryPage) -> None:
    table = page.kept.table
    tokens = COLUMNS.index(TableColumn.TOKENS)
    assert table.columnSpan(2, tokens) == 3 and table.columnSpan(0, tokens) == 1
    text = table.kept.index(2, tokens).data()
    assert text == "5,210 tokens, read again once in about 2 s"


def test_figures_that_come_later_move_no_row_and_take_their_room(page: MemoryPage) -> None:
    short = tuple(KnownChat(c.chat, c.conversation, c.title, c.used_s) for c in CHATS)
    page.show_view(memory_view(told(*STATES, chats=short), NOW))
    tokens = COLUMNS.index(TableColumn.TOKENS)
    assert page.kept.table.columnSpan(2, tokens) == 1
    page.show_view(memory_view(told(*STATES), NOW))
    assert page.kept.table.columnSpan(2, tokens) == 3


def test_empty_states_say_why(page: MemoryPage) -> None:
    page.show_view(memory_view(told(chats=()), NOW))
    assert page.kept.accessibleDescription().startswith("Nothing is kept yet")
    assert page.kept.clear.isHidden()
    page.show_view(memory_view(Told(there=True, chats=CHATS), NOW))
    assert page.kept.accessibleDescription().startswith("One moment")
    page.show_view(memory_view(Told(there=False), NOW))
    assert page.cards == ()
    assert page.kept.accessibleDescription().startswith("The engine is not there yet")


def test_every_cell_has_words_for_a_screen_reader(page: MemoryPage) -> None:
    model, role = page.kept.table.kept, int(Qt.ItemDataRole.AccessibleTextRole)
    spoken = [[model.index(r, c).data(role) for c in range(len(COLUMNS))] for r in range(3)]
    assert spoken[1][:4] == ["On disk", "Cover letter, pinned", "4,096", "100 MB"]
    assert spoken[0][-1] == "P pins, Delete deletes" and spoken[2][-1] == ""


def test_the_page_tells_when_it_can_be_seen(stage: Stage) -> None:
    seen: list[bool] = []
    made = MemoryPage(stage.look, stage.icons, stage.window)
    made.shown_changed.connect(seen.append)
    made.show()
    made.hide()
    assert seen == [True, False]


def test_unloading_is_offered_only_while_a_model_is_loaded(page: MemoryPage) -> None:
    wanted: list[bool] = []
    page.head.action.clicked.connect(lambda: wanted.append(True))
    assert page.head.action.isHidden()
    page.head.offer("Gemma")
    assert not page.head.action.isHidden()
    page.head.action.click()
    page.head.offer("")
    assert page.head.action.isHidden() and wanted == [True]


def test_light_and_dark_paint_the_page_in_their_own_colours(stage: Stage, page: MemoryPage) -> None:
    grounds = []
    for preference in (Preference.LIGHT, Preference.DARK):
        stage.look.prefer(preference)
        settle()
        picture = page.grab().toImage()
        assert picture.pixelColor(8, 60).name().upper() == stage.look.theme.tokens.base.upper()
        table = page.kept.table.mapTo(page, page.kept.table.rect().topLeft())
        inside = picture.pixelColor(table.x() + 300, table.y() + 36 + 4)
        assert inside.name().upper() == stage.look.theme.tokens.surface.upper()
        grounds.append(inside.name())
    assert grounds[0] != grounds[1]


# Small parts -------------------------------------------------------------------------------------


def part(kind: PartKind, size: int) -> Part:
    return Part(kind, kind.name, size, "")


def test_parts_of_a_bar_fill_it_exactly_and_even_the_smallest_can_be_seen() -> None:
    box = QRectF(0, 0, 279, 14)
    parts = [part(PartKind.WEIGHTS, 1), part(PartKind.KEPT, 10**9), part(PartKind.FREE, 10**10)]
    boxes = part_boxes(parts, box, GAP, LEAST)
    assert [round(b.width(), 6) >= LEAST for b in boxes] == [True] * 3
    assert boxes[0].left() == 0 and abs(boxes[-1].right() - 279) < 1e-6
    for before, after in pairwise(boxes):
        assert abs(after.left() - before.right() - GAP) < 1e-6
    assert part_boxes([], box, GAP, LEAST) == []
    assert part_boxes([part(PartKind.FREE, 0)], box, GAP, LEAST) == [box]


def painted(paint: Callable[[QPainter], None], side: int) -> QImage:
    picture = QImage(side, side, QImage.Format.Format_ARGB32_Premultiplied)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    paint(painter)
    painter.end()
    return picture


def test_the_four_marks_differ_in_shape_without_any_colour(stage: Stage) -> None:
    tiers: tuple[Tier, ...] = ("device", "host", "disk", "none")
    shapes = set()
    for tier in tiers:
        box = QRectF(0, 0, DOT, DOT)
        made = painted(lambda p, t=tier, b=box: paint_state_dot(p, b, t, stage.look.theme), DOT)  # type: ignore[misc]
        shapes.add(
            tuple(made.pixelColor(x, y).alpha() > 127 for x in range(DOT) for y in range(DOT))
        )
    assert len(shapes) == 4


def test_a_bar_without_parts_is_the_bare_track(stage: Stage) -> None:
    theme = stage.look.theme
    made = painted(lambda p: paint_memory_bar(p, QRectF(0, 0, 40, 40), (), theme, 4), 40)
    assert made.pixelColor(20, 20).name().upper() == theme.tokens.track.upper()


def test_a_question_has_the_safe_answer_first_and_does_nothing_unless_told_to(
    stage: Stage,
) -> None:
    done: list[str] = []
    facts = QuestionFacts("Delete it?", "It costs.", "Delete", lambda: done.append("deleted"))
    for answer in ("no", "escape", "yes"):
        question = Question(stage.look, stage.icons, facts, stage.window)
        question.open()
        settle()
        assert question.focusWidget() is question.no and question.no.isDefault()
        if answer == "escape":
            press(question, Qt.Key.Key_Escape)
        else:
            (question.yes if answer == "yes" else question.no).click()
        settle()
    assert done == ["deleted"]


def test_a_move_over_the_edge_of_the_list_hovers_no_row(page: MemoryPage) -> None:
    table: QWidget = page.kept.table.viewport()
    place = QPointF(10, 5_000)
    none, plain = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(
        table, QMouseEvent(QEvent.Type.MouseMove, place, place, none, none, plain)
    )
    assert page.kept.table.itemDelegate().hovered == -1  # type: ignore[attr-defined]
