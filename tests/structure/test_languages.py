"""Every text of the window stands in every catalogue, translated, with the same values in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from installer.texts.languages import FOLDER, FORMS, compile_all, gathered, translations, written

VALUES = re.compile(r"\{\w+\}|%n")


@pytest.mark.parametrize("language", FORMS)
def test_a_catalogue_is_what_the_sources_say(language: str) -> None:
    """``python3 -m installer.texts.languages`` brings it up to date."""
    file = FOLDER / f"{language}.ts"
    assert file.read_text("utf-8") == written(language, gathered(), translations(file))


@pytest.mark.parametrize("language", FORMS)
def test_nothing_is_left_untranslated(language: str) -> None:
    known = translations(FOLDER / f"{language}.ts")
    texts = [text for text in gathered() if language != "en" or text.counts]
    assert [text.text for text in texts if text.text not in known] == []


@pytest.mark.parametrize("language", FORMS)
def test_a_translation_has_the_values_of_its_text(language: str) -> None:
    for text, forms in translations(FOLDER / f"{language}.ts").items():
        for form in forms:
            assert sorted(VALUES.findall(form)) == sorted(VALUES.findall(text)), text


def test_what_the_window_reads_is_made_from_the_catalogues(tmp_path: Path) -> None:
    """``python3 -m installer.texts.languages compile`` makes it."""
    compile_all(tmp_path)
    for language in FORMS:
        made = (tmp_path / f"{language}.qm").read_bytes()
        assert (FOLDER / f"{language}.qm").read_bytes() == made, language
