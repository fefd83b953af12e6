"""One running reply on the command line: to stdout, to the store, and to an end in every case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.cli.chat_log import ReplyLog
from app.cli.output import Output, OutputClosed, OutputFailed
from app.errors import EngineUnavailable, StoreError
from app.link.client import EngineClient
from app.link.mailbox import Mailbox, refusal
from engine.protocol import ChatMessage, Failure, Finished, Sampling, Tokens

STOP_LIMIT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: messages under the model's template, or ``raw`` without one."""

    messages: tuple[ChatMessage, ...] = ()
    raw: str | None = None
    date: str | None = None
    sibling: int = 0


class RunningReply:
    """Asks, writes what comes and keeps it.

    Attributes:
        interrupted: a person stopped it with Ctrl+C.
    """

    def __init__(
        self, client: EngineClient, output: Output, log: ReplyLog | None, *, streams: bool
    ) -> None:
        self._client = client
        self._output = output
        self._log = log
        self._streams = streams
        self._box = Mailbox()
        self.interrupted = False

    def run(self, question: Question, sampling: Sampling) -> Finished:
        """Ask and wait for the end.

        Raises:
            EngineRefused: the engine refused or failed.
            EngineUnavailable: it died.
            OutputClosed, OutputFailed, StoreError: the reply was stopped because it can go nowhere.
            KeyboardInterrupt: stopped twice, or the engine did not stop.
        """
        request = self._client.generate(
            question.messages,
            raw=question.raw,
            sampling=sampling,
            date=question.date,
            sibling=question.sibling,
            on_message=self._box.put,
        )
        with self._box:
            return self._follow(request)

    def _follow(self, request: int) -> Finished:
        try:
            return self._listen(None)
        except KeyboardInterrupt:
            self.interrupted = True
            self._client.cancel(request)
            return self._wind_down()
        except (OutputClosed, OutputFailed):
            self._streams = False
            self._client.cancel(request)
            self._wind_down()
            raise
        except StoreError:
            self._log = None
            self._client.cancel(request)
            self._wind_down()
            raise

    def _wind_down(self) -> Finished:
        """Take what still comes of a stopped reply; end the engine if that takes too long."""
        try:
            return self._listen(STOP_LIMIT_S)
        except (KeyboardInterrupt, EngineUnavailable):
            self._client.kill()
            if self._log is not None:
                self._log.cut()
            raise KeyboardInterrupt from None

    def _listen(self, limit_s: float | None) -> Finished:
        for message in self._box.messages(limit_s):
            match message:
                case Tokens():
                    self._take(message)
                case Finished():
                    if self._log is not None:
                        self._log.finish(message)
                    return message
                case Failure():
                    if self._log is not None:
                        self._log.fail(message)
                    raise refusal(message)
                case _:
                    pass
        raise EngineUnavailable("The engine ended the reply without a word.")

    def _take(self, tokens: Tokens) -> None:
        if self._streams and tokens.region == "answer":
            self._output.text(tokens.text)
        if self._log is not None:
            self._log.add(tokens)
