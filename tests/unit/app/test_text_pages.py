"""Log, doctor, about and crash reports: what a person reads, and what is left out of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from app.desktop.answers import Background
from app.machine.person import without_person
from app.pages.text.about_page import ROOT, AboutPage
from app.pages.text.crash import Fault, crash_of_before, report_text
from app.pages.text.log import LEVELS, levelled, narrowed, read_lines
from app.pages.text.log_page import LogPage
from app.pages.text.report_dialog import ReportDialog
from app.pages.text.report_page import ReportPage
from tests.helpers.qt import wait_until
from tests.unit.app.conftest import Stage

LINES = (
    "2026-11-30 12:00:00,123 INFO app.link engine started pid=7",
    "2026-11-30 12:00:01,000 ERROR app.window exception in the window",
    "Traceback (most recent call last):",
    '  File "x.py", line 1, in INFORMATION',
    "2026-11-30 12:00:02,000 WARNING app.link engine died",
)


@pytest.fixture
def background(stage: Stage) -> Iterator[Background]:
    made = Background(stage.window)
    yield made
    made.close()


def test_a_line_without_a_level_belongs_to_the_one_above_it() -> None:
    levels = [LEVELS[line.level] for line in levelled(LINES)]
    assert levels == ["INFO", "ERROR", "ERROR", "ERROR", "WARNING"]


def test_a_log_is_narrowed_by_level_and_by_words_in_any_order_and_case() -> None:
    lines = tuple(levelled(LINES))
    assert len(narrowed(lines, LEVELS.index("WARNING"), "")) == 4
    assert [line.text for line in narrowed(lines, 0, "DIED engine")] == [LINES[4]]
    assert narrowed(lines, LEVELS.index("CRITICAL"), "") == ()


def test_the_parts_of_a_log_are_read_oldest_first_and_missing_ones_left_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.1").write_text("old\n")
    (tmp_path / "a").write_bytes(b"new \xff\n")
    files = (tmp_path / "a.2", tmp_path / "a.1", tmp_path / "a")
    assert [line.text for line in read_lines(files)] == ["old", "new \ufffd"]


def test_the_log_page_reads_when_it_is_shown_and_copies_what_is_shown(
    stage: Stage, background: Background, tmp_path: Path
) -> None:
    (tmp_path / "window.log").write_text("\n".join(LINES))
    (tmp_path / "engine.log").write_text("engine line")
    page = LogPage(stage.look, stage.icons, tmp_path, background, stage.window)
    page.show()
    wait_until(lambda: "engine died" in page.text.toPlainText())
    page.words.line.setText("died")
    page.copy.click()
    assert QGuiApplication.clipboard().text() == LINES[4]
    assert page.count.text() == "1 of 5 lines"
    page.words.line.clear()
    page.least.setCurrentIndex(LEVELS.index("ERROR"))
    page.least.activated.emit(page.least.currentIndex())
    assert page.text.toPlainText() == "\n".join(LINES[1:4])
    page.which.setCurrentIndex(1)
    page.least.setCurrentIndex(0)
    page.which.activated.emit(1)
    wait_until(lambda: page.text.toPlainText() == "engine line")


def test_the_report_page_looks_each_time_it_is_shown(stage: Stage, background: Background) -> None:
    made: list[int] = []

    def make() -> str:
        made.append(1)
        return f"report {len(made)}"

    page = ReportPage(stage.look, stage.icons, make, background, stage.window)
    page.show()
    wait_until(lambda: page.text.toPlainText() == "report 1")
    page.hide()
    page.show()
    wait_until(lambda: page.text.toPlainText() == "report 2")
    page.copy.click()
    assert QGuiApplication.clipboard().text() == "report 2"


def test_the_page_about_hearth_shows_every_licence(stage: Stage, background: Background) -> None:
    page = AboutPage(stage.look, stage.icons, background, stage.window)
    page.show()
    wait_until(lambda: bool(page.licences.toPlainText()))
    text = page.licences.toPlainText()
    assert "LGPL-3.0" in text and "Apache License" in text
    assert (ROOT / "THIRD_PARTY_NOTICES.md").is_file()


def test_a_page_without_its_licences_says_so(
    stage: Stage, background: Background, tmp_path: Path
) -> None:
    page = AboutPage(stage.look, stage.icons, background, stage.window, root=tmp_path)
    told: list[object] = []
    background.failed.connect(told.append)
    page.show()
    wait_until(lambda: bool(told))
    assert "licences cannot be read" in str(told[0])


def test_a_report_has_neither_the_persons_home_nor_the_name() -> None:
    home = str(Path.home())
    fault = Fault("It fell.", f'File "{home}/x.py"')
    text = report_text(fault, f"States {home}/states", (f"INFO opened {home}/a",))
    assert home not in text and text.count("~/") == 3
    assert "It fell." in text and "not known" not in text


def test_a_person_is_taken_out_as_a_word_only() -> None:
    shown = without_person(Path("/people/ann"), "ann")
    assert shown("/people/ann/x ann planning") == "~/x USER planning"


def test_a_crash_is_told_once(tmp_path: Path) -> None:
    file = tmp_path / "window-crash.log"
    assert crash_of_before(file) is None
    file.write_text("Fatal Python error: Segmentation fault\n")
    crash = crash_of_before(file)
    assert crash is not None and "Segmentation fault" in crash.detail
    assert crash_of_before(file) is None


def test_what_a_person_takes_out_of_a_report_is_neither_copied_nor_saved(
    stage: Stage, background: Background, tmp_path: Path
) -> None:
    dialog = ReportDialog(stage.look, "secret\nrest", background, stage.window)
    dialog.text.setPlainText("rest")
    dialog.save(tmp_path / "report.txt")
    wait_until(lambda: dialog.state.text() == "Saved")
    assert (tmp_path / "report.txt").read_text() == "rest"
    dialog.save(tmp_path / "no" / "report.txt")
    wait_until(lambda: dialog.state.text().startswith("Not saved"))
    copy = next(b for b in dialog.findChildren(QPushButton) if b.text() == "Copy")
    copy.click()
    assert QGuiApplication.clipboard().text() == "rest"
    dialog.close()
