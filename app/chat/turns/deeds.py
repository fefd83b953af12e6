"""What can be done with one turn: pure facts, from which buttons and menus are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from app.chat.conversation import Conversation, Turn
from app.chat.turns.asking import may_go_on
from app.language.words import tr


class TurnVerb(Enum):
    """One thing that a person does with a turn."""

    COPY = auto()
    COPY_PLAIN = auto()
    COPY_THOUGHTS = auto()
    AGAIN = auto()
    CONTINUE = auto()
    EDIT = auto()
    BRANCH = auto()
    INFO = auto()
    DELETE = auto()
    EARLIER = auto()
    LATER = auto()


@dataclass(frozen=True, slots=True)
class TurnWish:
    """That something be done with the turn of this number."""

    verb: TurnVerb
    turn: int


@dataclass(frozen=True, slots=True)
class TurnDeed:
    """A button or a line of a menu.

    Attributes:
        name: a verb and its object.
        keys: that do the same from anywhere; empty for none.
        in_row: whether it has a button of its own; all have a line in the menu.
    """

    verb: TurnVerb
    icon: str
    name: str
    keys: str = ""
    in_row: bool = False
    enabled: bool = True

    @property
    def hint(self) -> str:
        """The name, with the keys where there are any."""
        return tr("{what} ({keys})", what=self.name, keys=self.keys) if self.keys else self.name


@dataclass(frozen=True, slots=True)
class Version:
    """Which of several versions of a turn is shown; the first one is 1."""

    number: int
    count: int


def version_of(conversation: Conversation, turn: Turn) -> Version | None:
    """Which version a turn is; None where there is only one."""
    versions = conversation.siblings(turn.id)
    return Version(versions.index(turn) + 1, len(versions)) if len(versions) > 1 else None


def versions_of(conversation: Conversation) -> Mapping[int, Version | None]:
    """Which version each turn is, as ``version_of`` says of one."""
    families: dict[int | None, list[Turn]] = {}
    for turn in conversation.turns.values():
        families.setdefault(turn.parent, []).append(turn)
    found: dict[int, Version | None] = {}
    for family in families.values():
        count = len(family)
        for number, turn in enumerate(sorted(family, key=lambda one: one.sibling), start=1):
            found[turn.id] = Version(number, count) if count > 1 else None
    return found


def deeds_of(conversation: Conversation, turn: Turn, *, busy: bool) -> tuple[TurnDeed, ...]:
    """What can be done with a turn, in the order of the menu; while a reply runs little can."""
    if turn.role == "assistant":
        return _deeds_of_reply(conversation, turn, busy=busy)
    free = not busy
    return (
        TurnDeed(TurnVerb.COPY, "copy", tr("Copy the message"), in_row=True),
        TurnDeed(TurnVerb.EDIT, "edit", tr("Edit"), in_row=True, enabled=free),
        TurnDeed(
            TurnVerb.BRANCH, "branch", tr("Branch into a new chat"), in_row=True, enabled=free
        ),
        TurnDeed(TurnVerb.DELETE, "trash", tr("Delete"), enabled=free),
    )


def _deeds_of_reply(conversation: Conversation, turn: Turn, *, busy: bool) -> tuple[TurnDeed, ...]:
    last = turn.id == conversation.leaf
    free = not busy
    goes_on = free and last and may_go_on(turn)
    thoughts = (
        TurnDeed(TurnVerb.COPY_THOUGHTS, "bulb", tr("Copy the thoughts")),
    ) if turn.thinking_text else ()  # fmt: skip
    return (
        TurnDeed(
            TurnVerb.COPY, "copy", tr("Copy as Markdown"), "Ctrl+Shift+C" if last else "", True
        ),
        TurnDeed(TurnVerb.COPY_PLAIN, "copy", tr("Copy as plain text")),
        *thoughts,
        TurnDeed(
            TurnVerb.AGAIN, "refresh", tr("Answer again"), "Ctrl+R" if last else "", True, free
        ),
        TurnDeed(
            TurnVerb.CONTINUE,
            "continue",
            tr("Continue"),
            "Alt+Enter" if last else "",
            True,
            goes_on,
        ),
        TurnDeed(TurnVerb.EDIT, "edit", tr("Edit"), enabled=free),
        TurnDeed(TurnVerb.BRANCH, "branch", tr("Branch into a new chat"), "", True, free),
        TurnDeed(TurnVerb.INFO, "info", tr("Information"), in_row=True),
        TurnDeed(TurnVerb.DELETE, "trash", tr("Delete"), enabled=free),
    )
