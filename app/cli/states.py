"""``hearth states``: what is kept of conversations on disk; pins and deletes it.

Needs the data directory for itself, as ``hearth ask`` does, but loads no model. The conversations
themselves are never touched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from app.chat.conversation import chat_name, chat_of
from app.chat.kept.plain import megabytes
from app.chat.store import Store
from app.cli.ask import opened_store, read_settings
from app.cli.engine import ANSWER_LIMIT_S, MakeCommand, own_command, started_engine
from app.cli.options import StatesOptions
from app.cli.output import Output
from app.directories import Directories, make_private
from app.errors import InputInvalid
from app.link.client import EngineClient
from app.link.mailbox import Mailbox
from app.lock import DirectoryLock
from app.memory.rows import where_words
from engine.protocol import StateFacts, StatesKept, Tier

TITLE_WIDTH: Final = 32
SHARED: Final = "(what several chats begin with)"
DELETED: Final = "(a deleted chat)"


class StateLine(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of one conversation under one model.

    ``chat`` is its title; null for what several begin with, and for a conversation that is no more,
    which then still has its number. ``own_bytes`` is what deleting it frees.
    """

    chat: str | None
    conversation: int | None
    model: str
    tokens: int
    bytes: int
    own_bytes: int
    tier: Tier
    pinned: bool
    last_used: str | None


class StatesReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints."""

    states: tuple[StateLine, ...]
    disk_bytes: int
    quota_bytes: int
    disk_free_bytes: int
    shared_bytes: int


def states(
    options: StatesOptions, places: Directories, make_command: MakeCommand, output: Output
) -> int:
    """Run the command and return the exit code; raises AppError."""
    make_private(places.data)
    settings = read_settings(places, output)
    with contextlib.ExitStack() as stack:
        stack.enter_context(DirectoryLock(places.lock_file, "hearth states"))
        store = stack.enter_context(opened_store(places, output))
        titles = all_titles(store)
        chat = None if options.chat is None else found_chat(titles, options.chat)
        command = own_command(places, settings, make_command)
        engine = stack.enter_context(started_engine(places, command))
        report = report_of(kept(engine.client, options, chat), titles)
    if options.json:
        output.json(report)
    else:
        for line in lines(report):
            output.line(line)
    return 0


def all_titles(store: Store) -> dict[int, str]:
    """The titles of all conversations, those in the trash too, by their numbers."""
    found = (*store.conversations.entries(), *store.conversations.entries(trashed=True))
    return {entry.id: entry.title for entry in found}


def found_chat(titles: Mapping[int, str], name: str) -> int:
    """The conversation that is called ``name``; raises InputInvalid for none or several."""
    found = [number for number, title in titles.items() if title == name]
    if len(found) > 1:
        raise InputInvalid(f"{len(found)} conversations are called {name!r}; rename one first.")
    if not found:
        raise InputInvalid(f"No conversation is called {name!r}.")
    return found[0]


def kept(client: EngineClient, options: StatesOptions, chat: int | None) -> StatesKept:
    """Do what was asked, and what is kept after it."""
    chats = None if chat is None else [chat_name(chat)]
    with Mailbox() as box:
        match options.action:
            case "pin" | "unpin":
                assert chat is not None
                pinned = options.action == "pin"
                client.pin_states(chat_name(chat), pinned, on_message=box.put)
            case "clear" | "clear-all":
                client.clear_states(chats, on_message=box.put)
            case "list":
                client.states(on_message=box.put)
        return box.answer(StatesKept, ANSWER_LIMIT_S)


def report_of(found: StatesKept, titles: Mapping[int, str]) -> StatesReport:
    """What the engine told, with the conversations' titles."""
    return StatesReport(
        states=tuple(line_of(state, titles) for state in found.states),
        disk_bytes=found.disk_bytes,
        quota_bytes=found.quota_bytes,
        disk_free_bytes=found.disk_free_bytes,
        shared_bytes=found.shared_bytes,
    )


def line_of(state: StateFacts, titles: Mapping[int, str]) -> StateLine:
    """One conversation's part."""
    chat = None if state.conversation is None else chat_of(state.conversation)
    return StateLine(
        chat=None if chat is None else titles.get(chat),
        conversation=chat,
        model=state.model,
        tokens=state.tokens,
        bytes=state.bytes,
        own_bytes=state.own_bytes,
        tier=state.tier,
        pinned=state.pinned,
        last_used=_moment(state.used_s),
    )


def lines(report: StatesReport) -> Iterator[str]:
    """The report for people: a table, and what it takes in all."""
    rows = [_cells(line) for line in report.states]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        title, model, tokens, size, *rest = row
        numbers = f"{tokens:>{widths[2]}} tokens  {size:>{widths[3]}}"
        words = "  ".join(f"{cell:<{width}}" for cell, width in zip(rest, widths[4:], strict=True))
        yield f"{title:<{widths[0]}}  {model:<{widths[1]}}  {numbers}  {words}".rstrip()
    if not rows:
        yield "Nothing is kept: every conversation is read once when it goes on."
    room = f"{megabytes(report.disk_free_bytes)} free on the disk"
    if not report.quota_bytes:
        yield f"{megabytes(report.disk_bytes)} kept; nothing is kept on disk any more; {room}."
    else:
        yield f"{megabytes(report.disk_bytes)} of {megabytes(report.quota_bytes)}; {room}."


def _cells(line: StateLine) -> tuple[str, ...]:
    title = line.chat
    if title is None:
        title = SHARED if line.conversation is None else DELETED
    title = " ".join(title.split())
    if len(title) > TITLE_WIDTH:
        title = f"{title[: TITLE_WIDTH - 3]}..."
    where = where_words(line.tier, gpu=False).lower() + (", pinned" if line.pinned else "")
    used = "" if line.last_used is None else f"used {_local(line.last_used)}"
    return (title, line.model, f"{line.tokens:,}", megabytes(line.bytes), where, used)


def _moment(seconds: float) -> str | None:
    """Seconds since 1970 as ISO in UTC; None where they are not known or beyond any date."""
    if seconds <= 0:
        return None
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    return None


def _local(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"
