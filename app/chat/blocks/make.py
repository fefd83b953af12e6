"""Makes the blocks of a transcript: one method for each kind."""

from __future__ import annotations

from app.chat.blocks.column import Column
from app.chat.blocks.inline_error import ErrorFacts, InlineError
from app.chat.blocks.remarks import Note, StatusLine, StatusWords
from app.chat.blocks.text_blocks import Prose, UserBubble
from app.chat.blocks.waiting_line import WaitingLine
from app.chat.turns.parts.row import ActionRow, RowFacts
from app.chat.turns.parts.thinking import ThinkingFold
from app.look.icons import Icons
from app.look.theme import Look


class BlockMaker:
    """Knows what every block needs: the look, the icons and the column it will stand in."""

    def __init__(self, look: Look, icons: Icons, column: Column) -> None:
        self._look = look
        self._icons = icons
        self._column = column

    def user_turn(self, text: str) -> UserBubble:
        """What the person wrote."""
        return UserBubble(self._look, self._column, text)

    def reply_turn(self, text: str) -> Prose:
        """A reply."""
        return Prose(self._look, self._column, text)

    def thinking(self, text: str) -> ThinkingFold:
        """What was thought before a reply."""
        return ThinkingFold(self._look, self._icons, self._column, text, self._column.grew)

    def row(self, facts: RowFacts) -> ActionRow:
        """What can be done with a turn."""
        return ActionRow(self._look, self._icons, self._column, facts)

    def status_line(self, facts: RowFacts, words: StatusWords) -> StatusLine:
        """The facts of a reply, how its prompt was resumed, and what can be done with it."""
        return StatusLine(self._look, self._icons, self._column, facts, words)

    def note(self, text: str) -> Note:
        """One quiet sentence."""
        return Note(self._look, self._icons, self._column, text)

    def error(self, facts: ErrorFacts) -> InlineError:
        """A failure."""
        return InlineError(self._look, self._icons, self._column, facts, self._column.grew)

    def waiting(self, text: str) -> WaitingLine:
        """What is waited for."""
        return WaitingLine(self._look, self._column, text)
