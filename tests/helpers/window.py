"""The whole window over a fake engine, for tests and pictures: built, driven, closed."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont

from app.chat.blocks.inline_error import InlineError
from app.chat.blocks.remarks import Note, StatusLine
from app.chat.blocks.text_blocks import UserBubble
from app.chat.blocks.waiting_line import WaitingLine
from app.chat.chats import Chats
from app.chat.rendered.reply import Reply
from app.chat.turns.parts.row import ActionRow
from app.chat.turns.parts.thinking import ThinkingFold
from app.composition import Application
from app.directories import Directories, directories, make_private
from app.library.catalogue import STARTER
from app.library.loaded import ModelPhase, ModelState
from app.link.process import EngineCommand
from app.settings.file import SettingsFile
from app.settings.record import Settings
from tests.helpers.fake_engine import Script, fake_command
from tests.helpers.qt import application, plain_font, press, settle, wait_until


class TestWindow:
    """A window on a folder of its own, with a model file that the fake engine accepts."""

    __test__ = False

    def __init__(
        self,
        folder: Path,
        script: Script | None = None,
        *,
        model: bool = True,
        font: QFont | None = None,
        command: EngineCommand | None = None,
        titles: bool = False,
    ) -> None:
        self.places: Directories = directories(folder)
        make_private(self.places.data)
        make_private(self.places.models)
        if model:
            (self.places.models / STARTER.file_name).write_bytes(b"GGUF")
        if not titles and not self.places.settings_file.exists():
            SettingsFile(self.places.settings_file).save(Settings(auto_titles=False))
        self.qt = application()
        self.whole = Application(
            self.qt,
            self.places,
            SettingsFile(self.places.settings_file),
            command if command is not None else fake_command(script),
            font=font if font is not None else plain_font(),
        )
        self.window = self.whole.window
        self.page = self.window.page
        self.closed = False
        self.window.show()

    def start(self) -> TestWindow:
        """Start what is behind the window."""
        self.whole.start()
        return self

    def started(self) -> TestWindow:
        """Start, and wait until a chat is shown and the model is ready."""
        self.start()
        wait_until(lambda: self.idle() and self.model().phase is ModelPhase.READY)
        return self

    # What a person does --------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Put ``text`` into the composer and press Enter."""
        self.page.composer.field.insertPlainText(text)
        press(self.page.composer.field, Qt.Key.Key_Return, "\r")

    def ask(self, text: str) -> None:
        """Write, and wait for the reply's end."""
        self.write(text)
        wait_until(lambda: not self.idle())
        wait_until(self.idle)

    # What a person sees --------------------------------------------------------------------------

    def model(self) -> ModelState:
        """Where the model stands."""
        return self.whole.workshop.model.state

    def chats(self) -> Chats:
        """The chats behind the window."""
        return self.whole.workshop.chats

    def idle(self) -> bool:
        """Whether a chat is shown and nothing runs in it."""
        session = self.page.session
        return session is not None and not session.state.busy

    def reply_so_far(self) -> str:
        """The text of the running reply of the chat that is shown."""
        return self.page.session.reply_so_far if self.page.session is not None else ""

    def shown(self) -> list[str]:
        """Every block of the transcript in words: ``user: ...``, ``reply: ...``."""
        words = []
        for block in self.page.transcript.column.blocks:
            match block:
                case UserBubble(text=text):
                    words.append(f"user: {text}")
                case Reply(text=text):
                    words.append(f"reply: {text}")
                case StatusLine(text=text):
                    words.append(f"status: {text}")
                case ActionRow():
                    pass
                case ThinkingFold(text=text):
                    words.append(f"thoughts: {text}")
                case Note(text=text):
                    words.append(f"note: {text}")
                case InlineError(facts=facts):
                    words.append(f"card: {facts.title}")
                case _:
                    words.append(type(block).__name__)
        return words

    def chips(self) -> list[str]:
        """What is said of each reply's resume; empty where nothing is."""
        lines = (b for b in self.page.transcript.column.blocks if isinstance(b, StatusLine))
        return [line.chip.text() if line.chip is not None else "" for line in lines]

    def waiting(self) -> str:
        """The words beside the arc; empty where nothing is waited for."""
        lines = (b for b in self.page.transcript.column.blocks if isinstance(b, WaitingLine))
        return next((line.text for line in lines), "")

    def close(self) -> None:
        """Close the window and everything behind it, and let Qt delete what it should."""
        if not self.closed:
            self.closed = True
            self.window.close()
            self.whole.close()
            self.whole.deleteLater()
            settle()
