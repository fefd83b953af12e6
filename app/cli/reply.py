"""One running reply on the command line: to stdout, to the store, and to an end in every case."""

from __future__ import annotations

from typing import Final

from app.cli.chat_log import ReplyLog
from app.cli.output import Output, OutputClosed, OutputFailed
from app.errors import EngineRefused, EngineUnavailable, StoreError
from app.link.client import EngineClient, Question
from app.link.mailbox import Mailbox, refusal
from engine.protocol import Failure, Finished, Sampling, Tokens

STOP_LIMIT_S: Final = 5.0


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
        self._ended = False
        self.interrupted = False

    def run(self, question: Question, sampling: Sampling) -> Finished:
        """Ask and wait for the end.

        Raises:
            EngineRefused: the engine refused or failed.
            EngineUnavailable: it died.
            OutputClosed, OutputFailed, StoreError: the reply was stopped because it can go nowhere.
            KeyboardInterrupt: stopped twice, or the engine did not stop.
        """
        request = self._client.generate(question, sampling=sampling, on_message=self._box.put)
        with self._box:
            return self._follow(request)

    def _follow(self, request: int) -> Finished:
        try:
            return self._listen(None)
        except KeyboardInterrupt:
            self.interrupted = True
            finished = self._wind_down(request)
            if finished is None:
                raise
            return finished
        except (OutputClosed, OutputFailed):
            self._streams = False
            self._wind_down(request)
            raise
        except StoreError:
            self._log = None
            self._wind_down(request)
            raise

    def _wind_down(self, request: int) -> Finished | None:
        """Stop the reply and take what still comes; end an engine that takes too long for that."""
        if self._ended:
            return None
        self._client.cancel(request)
        try:
            return self._listen(STOP_LIMIT_S)
        except (KeyboardInterrupt, EngineUnavailable, EngineRefused):
            self._client.kill()
            if self._log is not None and not self._ended:
                self._log.cut()
            return None

    def _listen(self, limit_s: float | None) -> Finished:
        for message in self._box.messages(limit_s):
            match message:
                case Tokens():
                    self._take(message)
                case Finished():
                    self._ended = True
                    if self._log is not None:
                        self._log.finish(message)
                    return message
                case Failure():
                    self._ended = True
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
