"""The window's actions: what can be done from anywhere by keys, one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.actions import Action
from app.chat.page import ChatPage
from app.language.words import tr
from app.pages.names import PageName
from app.window import Window


@dataclass(frozen=True, slots=True)
class Deeds:
    """What actions do beyond the window itself.

    Attributes:
        zoom: takes steps up or down, 0 for the system's size.
        working: whether there are chats yet.
    """

    new_chat: Callable[[], None]
    trash_chat: Callable[[], None]
    show_shortcuts: Callable[[], None]
    zoom: Callable[[int], None]
    working: Callable[[], bool]


def window_actions(window: Window, deeds: Deeds) -> tuple[Action, ...]:
    """Every action, in the order of the list of shortcuts."""
    page = window.page

    def write() -> None:
        window.show_page(PageName.CHAT)
        page.composer.setFocus()

    def escape() -> None:
        if window.close_overlay():
            return
        if window.shown is not PageName.CHAT:
            window.show_page(PageName.CHAT)
        else:
            page.stop()

    def close() -> None:
        window.close()

    return (
        Action("chat.new", tr("New chat"), ("Ctrl+N", "Ctrl+Shift+O"), deeds.new_chat,
               deeds.working),
        Action("chat.stop", tr("Stop the reply"), ("Esc",), escape),
        *_reply_actions(page),
        Action("chat.trash", tr("Delete the chat"), ("Ctrl+Shift+Backspace",), deeds.trash_chat,
               page.isVisible),
        Action("app.undo", tr("Undo"), ("Ctrl+Z",), window.toast.undo, window.toast.isVisible),
        *_view_actions(window, deeds, write),
        Action("app.close", tr("Close the window"), ("Ctrl+W", "Ctrl+Q"), close),
    )  # fmt: skip


def _view_actions(window: Window, deeds: Deeds, write: Callable[[], None]) -> tuple[Action, ...]:
    """What changes what is seen."""

    def show(name: PageName) -> Callable[[], None]:
        return lambda: window.show_page(name)

    return (
        Action("view.sidebar", tr("Toggle the sidebar"), ("Ctrl+B", "F9"), window.toggle_sidebar),
        Action("chat.search", tr("Search chats"), ("Ctrl+K",), window.search),
        Action("model.choose", tr("Choose a model"), ("Ctrl+L",), window.bar.picker_wanted.emit),
        Action("chat.options", tr("Options of this chat"), ("Ctrl+Alt+P",),
               window.bar.options_wanted.emit, window.page.isVisible),
        Action("view.composer", tr("Write a message"), ("Shift+Esc",), write),
        Action("view.chat", tr("Show the chat"), ("Ctrl+1",), write),
        Action("view.memory", tr("Show the memory"), ("Ctrl+4",), show(PageName.MEMORY)),
        Action("view.settings", tr("Settings"), ("Ctrl+,",), show(PageName.SETTINGS)),
        Action("view.larger", tr("Larger text"), ("Ctrl++", "Ctrl+="), lambda: deeds.zoom(1)),
        Action("view.smaller", tr("Smaller text"), ("Ctrl+-",), lambda: deeds.zoom(-1)),
        Action("view.usual", tr("Text as the system has it"), ("Ctrl+0",), lambda: deeds.zoom(0)),
        Action("app.shortcuts", tr("Keyboard shortcuts"), ("Ctrl+/", "F1"), deeds.show_shortcuts),
    )  # fmt: skip


def _reply_actions(page: ChatPage) -> tuple[Action, ...]:
    """What is done with the last reply."""
    return (
        Action("chat.again", tr("Answer again"), ("Ctrl+R",), page.answer_again, page.isVisible),
        Action("chat.copy-reply", tr("Copy the reply"), ("Ctrl+Shift+C",), page.copy_last_reply,
               page.isVisible),
        Action("chat.copy-code", tr("Copy the last code block"), ("Ctrl+Shift+;",),
               page.copy_last_code, page.isVisible),
        Action("chat.continue", tr("Continue the reply"), ("Alt+Return", "Alt+Enter"),
               page.continue_reply, page.isVisible),
    )  # fmt: skip
