"""What the settings page offers: every field as data, in the order of the page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from app.language.words import tr


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several: the value and its words."""

    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """On or off."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number; ``none`` are the words for None, which stands below ``least``.

    Attributes:
        factor: what is shown is the value times this.
    """

    least: float
    most: float
    step: float
    decimals: int = 0
    unit: str = ""
    none: str = ""
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour as "#rrggbb", or None for the usual one."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders, as paths."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text; an empty one is None, of which ``none`` tells what it means."""

    none: str


Kind = Choice | Switch | Number | Colour | Folders | Line


@dataclass(frozen=True, slots=True)
class Field:
    """A field of ``Settings``.

    Attributes:
        at_start: what is set holds from the next start on.
    """

    name: str
    title: str
    hint: str
    kind: Kind
    at_start: bool = False


class Wanted(Enum):
    """What a button of the page asks for."""

    SHORTCUTS = "shortcuts"
    DATA_FOLDER = "data-folder"
    LOG = "log"
    DOCTOR = "doctor"
    ABOUT = "about"


@dataclass(frozen=True, slots=True)
class Button:
    """A row that does something instead of setting it."""

    wanted: Wanted
    title: str
    hint: str
    verb: str


@dataclass(frozen=True, slots=True)
class Section:
    """Rows under one heading."""

    title: str
    rows: tuple[Field | Button, ...]


def sections(languages: tuple[tuple[str, str], ...]) -> tuple[Section, ...]:
    """The whole page; ``languages`` are the tags and names of those there are."""
    return (
        Section(tr("Appearance"), _appearance(languages)),
        Section(tr("Chats"), _chats()),
        Section(tr("Models"), _models()),
        Section(tr("Memory"), _memory()),
        Section(tr("Privacy and files"), _files()),
        Section(tr("Help"), _help()),
    )


def _appearance(languages: tuple[tuple[str, str], ...]) -> tuple[Field, ...]:
    return (
        Field(
            "theme",
            tr("Theme"),
            tr("Light, dark, or as the system is"),
            Choice((("system", tr("As the system")), ("light", tr("Light")), ("dark", tr("Dark")))),
        ),
        Field("accent", tr("Accent"), tr("The colour of what you can do"), Colour()),
        Field(
            "text_scale",
            tr("Size of text"),
            tr("Of everything in the window; also Ctrl and + or -"),
            Number(80, 200, 10, unit=" %", factor=100),
        ),
        Field(
            "full_width",
            tr("Chats as wide as the window"),
            tr("Otherwise a column that is good to read"),
            Switch(),
        ),
        Field(
            "language",
            tr("Language"),
            tr("Of the window; replies are in the language that you write in"),
            Choice((("system", tr("As the system")), *languages)),
            at_start=True,
        ),
    )


def _chats() -> tuple[Field | Button, ...]:
    return (
        Field(
            "send_key",
            tr("Send with"),
            tr("The other one, or Shift+Enter, begins a new line"),
            Choice((("enter", tr("Enter")), ("ctrl+enter", tr("Ctrl+Enter")))),
        ),
        Field(
            "auto_titles",
            tr("Title chats by themselves"),
            tr("The model titles a chat after its first reply, while nothing else waits"),
            Switch(),
        ),
        Button(
            Wanted.SHORTCUTS,
            tr("Keyboard shortcuts"),
            tr("Everything can be done by keyboard; also Ctrl+/"),
            tr("Show"),
        ),
    )


def _models() -> tuple[Field, ...]:
    return (
        Field(
            "default_model",
            tr("Model at start"),
            tr("Name or path of the one that is loaded when Hearth opens"),
            Line(tr("the one used last")),
            at_start=True,
        ),
        Field(
            "model_folders",
            tr("Folders with models"),
            tr("Looked through besides Hearth's own; nothing is copied or changed"),
            Folders(),
            at_start=True,
        ),
    )


def _memory() -> tuple[Field, ...]:
    automatic = tr("automatic")
    return (
        Field(
            "states_quota_gb",
            tr("Disk for kept chats"),
            tr("So that old chats go on at once; 0 keeps none. Texts of chats are not in it"),
            Number(0, 1e6, 1, 1, " GB", automatic),
            at_start=True,
        ),
        Field(
            "allow_8bit_kv",
            tr("Longer context in 8 bits"),
            tr("Where memory is short; replies may differ slightly"),
            Switch(),
            at_start=True,
        ),
    )


def _files() -> tuple[Field | Button, ...]:
    return (
        Button(
            Wanted.DATA_FOLDER,
            tr("Where your chats are"),
            tr("On this computer only. Hearth sends nothing of them anywhere and counts nothing"),
            tr("Open folder"),
        ),
    )


def _help() -> tuple[Field | Button, ...]:
    return (
        Button(
            Wanted.DOCTOR,
            tr("Check this computer"),
            tr("What Hearth found: processor, GPU, memory, disks"),
            tr("Check"),
        ),
        Button(Wanted.LOG, tr("Log"), tr("What the window and the engine wrote"), tr("Show")),
        Button(
            Wanted.ABOUT,
            tr("About Hearth"),
            tr("Version, and the licences of what it is made with"),
            tr("Show"),
        ),
    )
