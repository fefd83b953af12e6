"""Catalogues of the window's texts: gathered from the sources, kept as Qt Linguist's files.

    python3 -m installer.texts.languages            brings resources/languages/*.ts up to date
    python3 -m installer.texts.languages compile    makes the .qm that the window reads

Texts are the literals of ``tr`` and ``tr_count``. Translations that are there stay; a text that is
no more loses its entry.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "resources" / "languages"
CONTEXT: Final = "Hearth"
FORMS: Final = {"en": 2, "de": 2, "zh_CN": 1}
"""How many plural forms a language has; its catalogue is made where it is not there."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the sources; ``counts``: it has plural forms; ``file`` is where it stands first."""

    text: str
    counts: bool
    file: str


def gathered(folder: Path = ROOT / "app") -> tuple[Text, ...]:
    """Every text under ``folder``, in the order of files and lines.

    Raises:
        ValueError: ``tr`` is given something that is no literal.
    """
    found: dict[str, Text] = {}
    for file in sorted(folder.rglob("*.py")):
        where = file.relative_to(folder.parent).as_posix()
        for text in _texts_of(ast.parse(file.read_text("utf-8")), where):
            found.setdefault(text.text, text)
    return tuple(found.values())


def _texts_of(tree: ast.Module, where: str) -> Iterator[Text]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id not in ("tr", "tr_count") or not node.args:
            continue
        first = node.args[0]
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            raise ValueError(f"{where}:{node.lineno}: {node.func.id} takes a literal.")
        yield Text(first.value, node.func.id == "tr_count", where)


def translations(catalogue: Path) -> dict[str, tuple[str, ...]]:
    """What a catalogue has for each text: one form, or all plural forms; empty ones left out."""
    if not catalogue.exists():
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for message in ET.parse(catalogue).iter("message"):
        target = message.find("translation")
        if target is None:
            continue
        forms = [form.text or "" for form in target.findall("numerusform")] or [target.text or ""]
        if all(forms):
            found[message.findtext("source") or ""] = tuple(forms)
    return found


def written(language: str, texts: tuple[Text, ...], known: dict[str, tuple[str, ...]]) -> str:
    """A catalogue as a file; English has plural forms only, its texts are the sources'."""
    root = ET.Element("TS", version="2.1", language=language, sourcelanguage="en")
    context = ET.SubElement(root, "context")
    ET.SubElement(context, "name").text = CONTEXT
    for text in texts:
        if language == "en" and not text.counts:
            continue
        message = ET.SubElement(context, "message", {"numerus": "yes"} if text.counts else {})
        ET.SubElement(message, "location", filename=text.file)
        ET.SubElement(message, "source").text = text.text
        forms = known.get(text.text, ())
        fits = len(forms) == (FORMS[language] if text.counts else 1)
        target = ET.SubElement(message, "translation", {} if fits else {"type": "unfinished"})
        if text.counts:
            for place in range(FORMS[language]):
                ET.SubElement(target, "numerusform").text = forms[place] if fits else ""
        elif fits:
            target.text = forms[0]
    ET.indent(root, "    ")
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n{body}\n'


def update() -> None:
    """Bring every catalogue up to date with the sources."""
    FOLDER.mkdir(exist_ok=True)
    texts = gathered()
    for language in FORMS:
        file = FOLDER / f"{language}.ts"
        file.write_text(written(language, texts, translations(file)), "utf-8")


def compile_all(into: Path = FOLDER) -> None:
    """Make the .qm of every catalogue with Qt's own tool."""
    for file in sorted(FOLDER.glob("*.ts")):
        target = into / f"{file.stem}.qm"
        command = ("pyside6-lrelease", "-silent", str(file), "-qm", str(target))
        tool = Path(sys.executable).with_name(command[0])
        subprocess.run((str(tool), *command[1:]), check=True)


if __name__ == "__main__":
    compile_all() if sys.argv[1:] == ["compile"] else update()
