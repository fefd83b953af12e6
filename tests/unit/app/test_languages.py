"""The window's language: which catalogue is taken, and that it is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QTranslator

from app.language.install import chosen, install, languages
from app.language.words import tr, tr_count
from installer.texts.languages import Text, gathered, translations, written
from tests.helpers.qt import application

THERE = ("de", "en", "zh_CN")


@pytest.mark.parametrize(
    ("wanted", "system", "taken"),
    [
        ("system", ("de-AT", "en-US"), "de"),
        ("system", ("fr-FR", "de-DE"), "de"),
        ("system", ("zh-Hans-CN",), "zh_CN"),
        ("system", ("zh-Hans-SG",), "zh_CN"),
        ("system", ("zh-Hant-TW",), "en"),
        ("system", ("en-GB", "de-DE"), "en"),
        ("system", ("fr-FR",), "en"),
        ("system", (), "en"),
        ("de", ("zh-Hans-CN",), "de"),
        ("xx", ("de-DE",), "en"),
    ],
)
def test_the_catalogue_is_the_one_that_a_person_reads(
    wanted: str, system: tuple[str, ...], taken: str
) -> None:
    assert chosen(wanted, THERE, system) == taken


def test_every_language_has_a_catalogue_that_the_window_can_read() -> None:
    assert languages() == THERE


def test_a_folder_without_catalogues_leaves_texts_in_english(tmp_path: Path) -> None:
    parent = application()
    assert install(parent, "de", tmp_path) == "en"
    assert tr("{count} of {total}", count=1, total=2) == "1 of 2"
    assert tr_count("%n nothings here", 3) == "3 nothings here"
    for translator in parent.findChildren(QTranslator):
        translator.deleteLater()


def test_translations_stay_when_the_sources_change() -> None:
    kept = (Text("Undo", False, "a.py"), Text("%n tokens", True, "a.py"))
    known = {"Undo": ("Rückgängig",), "%n tokens": ("%n Token", "%n Token"), "Gone": ("Weg",)}
    text = written("de", (*kept, Text("New", False, "b.py")), known)
    assert "Rückgängig" in text and "<numerusform>%n Token</numerusform>" in text
    assert "Gone" not in text
    assert text.count("unfinished") == 1


def test_a_catalogue_is_read_as_it_was_written(tmp_path: Path) -> None:
    texts = (Text('A <b> & "c"', False, "a.py"), Text("%n x", True, "a.py"))
    known = {texts[0].text: ('Ä <b> & "ç"',), "%n x": ("%n y", "%n ys")}
    (tmp_path / "de.ts").write_text(written("de", texts, known), "utf-8")
    assert translations(tmp_path / "de.ts") == known


def test_a_text_that_is_no_literal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "a.py").write_text("tr(name)", "utf-8")
    with pytest.raises(ValueError, match=r"a\.py:1: tr takes a literal"):
        gathered(tmp_path / "app")
