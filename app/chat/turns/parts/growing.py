"""The reply that is being written, as the transcript shows it: thoughts first, then the text."""

from __future__ import annotations

from app.chat.conversation import Turn
from app.chat.session_facts import Growth
from app.chat.transcript import Transcript
from app.chat.turns.asking import SoFar
from app.chat.turns.parts.thinking import ThinkingFold


class GrowingReply:
    """At most one reply that grows, at the end of the transcript."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._thoughts: ThinkingFold | None = None
        self._thinks = False
        self._grows = False
        self._text = ""

    def forget(self) -> None:
        """The column was emptied."""
        self._thoughts = None
        self._thinks = self._grows = False
        self._text = ""

    def show(self, reply: SoFar) -> None:
        """Show what has come already of a reply that grows."""
        if reply.thinking_text:
            fold = self._begin_thoughts(reply.thinking_text)
            if reply.text:
                self._end_thoughts(reply.facts.thinking_ms, reply.facts.thinking_tokens)
            else:
                fold.begin()
        if reply.text:
            self._grows, self._text = True, reply.text
            self._transcript.begin_reply(reply.text)

    def grow(self, growth: Growth, reply: SoFar | None) -> None:
        """Add newly generated text."""
        if growth.region == "thinking":
            if self._thoughts is None:
                self._begin_thoughts("").begin()
            assert self._thoughts is not None
            self._thoughts.append(growth.text)
        elif growth.region == "answer":
            if self._thinks and reply is not None:
                self._end_thoughts(reply.facts.thinking_ms, reply.facts.thinking_tokens)
            self._grows = True
            self._text += growth.text
            self._transcript.grow_reply(growth.text)

    def finish(self, turn: Turn) -> None:
        """Close it as it was stored."""
        facts = turn.reply
        if turn.thinking_text and self._thoughts is None:
            self._begin_thoughts(turn.thinking_text)
        if self._thoughts is not None and facts is not None:
            self._thoughts.finish(turn.thinking_text, facts.thinking_ms, facts.thinking_tokens)
        self._transcript.end_reply(turn.text)
        self.forget()

    def abandon(self) -> None:
        """Close it as it is: its end could not be stored."""
        if self._grows:
            if self._thoughts is not None:
                self._end_thoughts(None, None)
            self._transcript.end_reply(self._text)
            self.forget()

    def _begin_thoughts(self, text: str) -> ThinkingFold:
        fold = self._thoughts = self._transcript.make.thinking(text)
        self._thinks = self._grows = True
        self._transcript.column.add([fold])
        return fold

    def _end_thoughts(self, milliseconds: float | None, tokens: int | None) -> None:
        if self._thoughts is not None:
            self._thinks = False
            self._thoughts.finish(self._thoughts.text, milliseconds, tokens)
