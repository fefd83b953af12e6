"""A reply of the command line that can go nowhere any more is stopped, and the reason told."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from app.chat.conversation import TurnState
from app.chat.store import open_store
from app.cli.chat_log import ReplyLog, open_chat
from app.cli.output import Output, OutputClosed
from app.cli.reply import RunningReply
from app.errors import StoreFull
from app.link.client import Question
from engine.protocol import ChatMessage, Sampling
from tests.helpers.fake_engine import Script
from tests.helpers.link import LIMIT_S, client_on, load

QUESTION = Question((ChatMessage(role="user", text="hi"),))
SHORT = Script(reply="x" * 50_000)
LONG = Script(reply="x" * 5_000, times=2000, words_per_s=100)


@pytest.mark.parametrize("script", [SHORT, LONG])
def test_a_full_disk_ends_the_reply_also_at_its_very_end(tmp_path: Path, script: Script) -> None:
    with (
        open_store(tmp_path / "chats.sqlite3").store as store,
        client_on(tmp_path, script) as (client, _),
    ):
        client.wait_ready(LIMIT_S)
        loaded = load(client)
        log = ReplyLog(store, open_chat(store, "c", None), "hi", loaded, Sampling())
        database = store.turns._database
        database.read(f"PRAGMA max_page_count = {database.pragma('page_count')}")
        out = io.BytesIO()
        begun = time.monotonic()
        with pytest.raises(StoreFull):
            RunningReply(client, Output(out, False), log, streams=True).run(QUESTION, Sampling())
        assert time.monotonic() - begun < 4.5
        assert out.getvalue().startswith(b"x" * 5_000), "what came was shown"
        assert client.ready, "the engine goes on"


class ClosesSoon(io.BytesIO):
    """A stdout whose reader leaves after a while."""

    def write(self, content: object, /) -> int:
        assert isinstance(content, bytes)
        if self.tell() > 50_000:
            raise BrokenPipeError
        return super().write(content)


def test_a_closed_output_ends_the_reply_and_keeps_it(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "chats.sqlite3").store as store,
        client_on(tmp_path, LONG) as (client, _),
    ):
        client.wait_ready(LIMIT_S)
        loaded = load(client)
        log = ReplyLog(store, open_chat(store, "c", None), "hi", loaded, Sampling())
        reply = RunningReply(client, Output(ClosesSoon(), False), log, streams=True)
        with pytest.raises(OutputClosed):
            reply.run(QUESTION, Sampling())
        kept = store.conversations.read(log.conversation.id).path()[-1]
    assert kept.state is TurnState.STOPPED
    assert len(kept.text) > 50_000


def test_an_engine_that_does_not_stop_is_ended_and_what_came_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.reply.STOP_LIMIT_S", 0.3)
    hung = Script(reply="x" * 5_000, times=2000, words_per_s=100, ignores_cancel=True,
                  end_at="reply", end_how="hang", end_after=15)  # fmt: skip
    with (
        open_store(tmp_path / "chats.sqlite3").store as store,
        client_on(tmp_path, hung) as (client, told),
    ):
        told.ready()
        loaded = load(client)
        log = ReplyLog(store, open_chat(store, "c", None), "hi", loaded, Sampling())
        reply = RunningReply(client, Output(ClosesSoon(), False), log, streams=True)
        with pytest.raises(OutputClosed):
            reply.run(QUESTION, Sampling())
        told.died()
        kept = store.conversations.read(log.conversation.id).path()[-1]
    assert kept.state is TurnState.STOPPED
    assert len(kept.text) > 50_000
