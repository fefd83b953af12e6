"""Puts the catalogue of the wanted language before the window's texts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

log = logging.getLogger(__name__)

FOLDER: Final = Path(__file__).resolve().parents[2] / "resources" / "languages"
ENGLISH: Final = "en"
TRADITIONAL: Final = frozenset({"Hant", "TW", "HK", "MO"})


def languages(folder: Path = FOLDER) -> tuple[str, ...]:
    """The tags that there is a catalogue for, such as "de" and "zh_CN"."""
    return tuple(sorted(file.stem for file in folder.glob("*.qm")))


def chosen(wanted: str, there: Sequence[str], system: Sequence[str]) -> str:
    """The catalogue for ``wanted``, or for the first of the system's languages that has one.

    Args:
        system: the system's languages as Qt names them, such as "zh-Hans-CN", the best first.
    """
    asked = system if wanted == "system" else (wanted,)
    found = (_catalogue_for(language.replace("-", "_"), there) for language in asked)
    return next((tag for tag in found if tag is not None), ENGLISH)


def _catalogue_for(language: str, there: Sequence[str]) -> str | None:
    parts = language.split("_")
    if parts[0] == "zh" and TRADITIONAL & set(parts):
        return None  # Another script: English is better than signs that one does not read.
    same = [tag for tag in there if tag.split("_")[0] == parts[0]]
    return language if language in same else same[0] if same else None


def install(application: QCoreApplication, wanted: str, folder: Path = FOLDER) -> str:
    """Install the catalogue for a setting, and Qt's own; returns the language's tag.

    To be called before the first text is shown: what is shown already stays as it is.
    """
    tag = chosen(wanted, languages(folder), QLocale.system().uiLanguages())
    own = QTranslator(application)
    if own.load(str(folder / f"{tag}.qm")):
        application.installTranslator(own)
    else:
        log.info("catalogue not read language=%s", tag)
    qt = QTranslator(application)
    if tag != ENGLISH and qt.load(
        f"qtbase_{tag}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    ):
        application.installTranslator(qt)
    return tag
