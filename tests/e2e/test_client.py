"""The client over a real child process: answers, deaths, restarts, ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.errors import (
    ENGINE_DIED,
    EngineRefused,
    EngineUnavailable,
    ModelHeldBack,
    RequestTooLarge,
)
from app.link.client import LinkLimits, Question
from app.link.deaths.restart import RestartPolicy
from app.link.events import LoadWish, TiersChanged
from app.link.mailbox import Mailbox
from app.lock import start_time
from engine.protocol import (
    MAX_FRAME_BYTES,
    ChatMessage,
    ChatTier,
    Counted,
    EngineMessage,
    Failure,
    Finished,
    Inspected,
    Loaded,
    MemoryFacts,
    Planned,
    Progress,
    Sampling,
    Settled,
    StateFacts,
    StatesKept,
    Tokens,
    Unloaded,
)
from tests.helpers.fake_engine import DEFAULT_REPLY, Script
from tests.helpers.link import LIMIT_S, QUICK, all_of, ask, client_on, load


def failure_of(box: Mailbox) -> Failure:
    last = all_of(box)[-1]
    assert isinstance(last, Failure), last
    return last


def is_gone(pid: int, limit_s: float = 5.0) -> bool:
    until = time.monotonic() + limit_s
    while start_time(pid) is not None and time.monotonic() < until:
        time.sleep(0.01)
    return start_time(pid) is None


def test_a_reply_is_told_as_it_comes_and_once_whole(tmp_path: Path) -> None:
    with client_on(tmp_path) as (client, told):
        assert told.ready().welcome.pid == client.pid
        load(client)
        messages = all_of(ask(client)[1])
        assert isinstance(messages[0], Progress)
        tokens = [m for m in messages if isinstance(m, Tokens)]
        finished = messages[-1]
        assert isinstance(finished, Finished)
        assert "".join(t.text for t in tokens) == finished.text == DEFAULT_REPLY
        assert sum((t.ids for t in tokens), ()) == finished.ids


def test_each_kind_of_request_has_its_answer(tmp_path: Path) -> None:
    model = tmp_path / "one.gguf"
    model.write_bytes(b"GGUF....")
    with client_on(tmp_path) as (client, _):
        client.wait_ready(LIMIT_S)
        boxes = [Mailbox() for _ in range(6)]
        client.load(model, on_message=boxes[0].put, wish=LoadWish(context_tokens=1234))
        client.plan(str(model), on_message=boxes[1].put)
        client.inspect((str(model),), on_message=boxes[2].put)
        client.count_tokens("one two three", on_message=boxes[3].put)
        client.memory(on_message=boxes[4].put)
        client.unload(on_message=boxes[5].put)
        assert boxes[0].answer(Loaded, LIMIT_S).model.context_tokens == 1234
        assert boxes[1].answer(Planned, LIMIT_S).lines[0].reason == str(model)
        assert boxes[2].answer(Inspected, LIMIT_S).files[0].name == "one"
        assert boxes[3].answer(Counted, LIMIT_S).tokens == 3
        assert boxes[4].answer(MemoryFacts, LIMIT_S).pools[0].name == "ram"
        boxes[5].answer(Unloaded, LIMIT_S)
        assert client.loaded_path is None


def test_kept_states_are_listed_pinned_cleared_and_settled(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    states = tuple(
        StateFacts(conversation=c, model="m", tokens=9, bytes=8, own_bytes=4, tier="disk")
        for c in ("1", "2")
    )
    tiers = (ChatTier(conversation="1", tier="disk", tokens=9),)
    script = Script(states=states, tiers=tiers, heard=str(heard))
    with client_on(tmp_path, script) as (client, told):
        told.ready()
        client.open_chats(["1"])
        client.known_chats(["1", "2"])
        load(client)
        assert told.next(TiersChanged).tiers.chats == tiers
        boxes = [Mailbox() for _ in range(4)]
        client.states(on_message=boxes[0].put)
        client.pin_states("2", True, on_message=boxes[1].put)
        client.clear_states(["1"], on_message=boxes[2].put)
        client.settle(50, on_message=boxes[3].put)
        assert boxes[0].answer(StatesKept, LIMIT_S).states == states
        assert [s.pinned for s in boxes[1].answer(StatesKept, LIMIT_S).states] == [False, True]
        (left,) = boxes[2].answer(StatesKept, LIMIT_S).states
        assert (left.conversation, left.pinned) == ("2", True)
        assert boxes[3].answer(Settled, LIMIT_S).waiting_bytes == 0
        with Mailbox() as box:
            client.clear_states(None, on_message=box.put)
            assert box.answer(StatesKept, LIMIT_S).states == ()
    client.known_chats(["1"])
    lines = [json.loads(line) for line in heard.read_text().splitlines()]
    kinds = [(line["type"], line.get("conversations")) for line in lines if line["type"] != "Load"]
    assert kinds == [
        ("OpenChats", ["1"]), ("KnownChats", ["1", "2"]), ("ClearStates", ["1"]),
        ("ClearStates", None),
    ]  # fmt: skip


def test_paths_reach_the_engine_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with client_on(tmp_path) as (client, _):
        client.wait_ready(LIMIT_S)
        assert load(client, "some.gguf").model.path == str(tmp_path / "some.gguf")


def test_a_stopped_reply_ends_with_what_came(tmp_path: Path) -> None:
    script = Script(reply=" ".join(["word"] * 500), words_per_s=200)
    with client_on(tmp_path, script) as (client, _):
        client.wait_ready(LIMIT_S)
        load(client)
        request, box = ask(client)
        said: list[EngineMessage] = []
        for message in box.messages(LIMIT_S):
            said.append(message)
            if isinstance(message, Tokens) and len(said) == 5:
                client.cancel(request)
        finished = said[-1]
        assert isinstance(finished, Finished)
        assert finished.stop_reason == "stopped"
        assert 3 <= len(finished.ids) < 100
        client.cancel(request)
        client.cancel(12345)
        assert isinstance(all_of(ask(client, sampling=Sampling(max_tokens=2))[1])[-1], Finished)


@pytest.mark.parametrize("how", ["hang", "deaf"])
def test_an_engine_that_does_not_stop_a_reply_is_taken_for_hung(tmp_path: Path, how: str) -> None:
    hangs = Script(end_at="reply", end_how="hang", end_after=1)
    deaf = Script(reply="word", times=10_000, words_per_s=20, ignores_cancel=True)
    script = hangs if how == "hang" else deaf
    with client_on(tmp_path, script, limits=LinkLimits(stop_s=0.3)) as (client, told):
        pid = told.ready().welcome.pid
        load(client)
        request, box = ask(client)
        time.sleep(0.2)
        client.cancel(request)
        client.cancel(request)
        assert failure_of(box).code == ENGINE_DIED
        assert "did not stop a reply" in told.died().outcome.sentence
        assert is_gone(pid)


def test_the_engines_death_fails_every_running_request(tmp_path: Path) -> None:
    with client_on(tmp_path, Script(end_at="reply")) as (client, told):
        told.ready()
        load(client)
        first, second = ask(client)[1], ask(client)[1]
        assert failure_of(first).code == failure_of(second).code == ENGINE_DIED
        died = told.died()
        assert died.outcome.signal == signal.SIGKILL
        assert died.restart_in_s is None
        assert not died.outcome.clean
        assert "fake engine started" in died.outcome.detail
        with pytest.raises(EngineUnavailable):
            ask(client)


@pytest.mark.parametrize("how", ["kill", "exit", "garbage", "half-frame"])
def test_after_a_death_the_next_engine_answers(tmp_path: Path, how: str) -> None:
    script = Script(end_at="reply", end_how=how, once=str(tmp_path / "once"))  # type: ignore[arg-type]
    with client_on(tmp_path, script, restart=RestartPolicy(QUICK)) as (client, told):
        told.ready()
        load(client, "/models/a.gguf")
        assert failure_of(ask(client)[1]).code == ENGINE_DIED
        died = told.died()
        assert died.restart_in_s == 0.01
        ready = told.ready()
        assert ready.restarts == 1
        assert ready.reload is not None
        assert ready.reload.path == "/models/a.gguf"
        assert client.loaded_path is None
        load(client, ready.reload.path)
        assert isinstance(all_of(ask(client)[1])[-1], Finished)


def test_garbage_on_the_pipe_is_named_as_a_fault_and_ends_the_engine(tmp_path: Path) -> None:
    with client_on(tmp_path, Script(end_at="reply", end_how="garbage")) as (client, told):
        pid = told.ready().welcome.pid
        load(client)
        ask(client)
        outcome = told.died().outcome
        assert outcome.fault is not None
        assert "bytes" in outcome.fault
        assert is_gone(pid)


def test_a_checkpoint_that_killed_the_engine_twice_is_held_back(tmp_path: Path) -> None:
    with client_on(tmp_path, Script(end_at="load"), restart=RestartPolicy(QUICK)) as (client, told):
        told.ready()
        for held_back in (False, True):
            client.load("/models/bad.gguf", on_message=lambda _: None)
            told.died()
            ready = told.ready()
            choice = ready.held_back if held_back else ready.reload
            assert choice is not None
            assert choice.path == "/models/bad.gguf"
            assert (ready.reload is None) is held_back
        with pytest.raises(ModelHeldBack):
            client.load("/models/bad.gguf", on_message=lambda _: None, by_itself=True)
        client.load("/models/good.gguf", on_message=lambda _: None, by_itself=True)
        told.died()


def test_an_engine_that_cannot_start_is_given_up_after_three_tries(tmp_path: Path) -> None:
    script = Script(end_at="start", end_how="exit")
    with client_on(tmp_path, script, restart=RestartPolicy(QUICK)) as (client, told):
        waits = [told.died().restart_in_s for _ in range(3)]
        assert waits == [0.01, 0.02, None]
        with pytest.raises(EngineUnavailable, match="starting"):
            client.wait_ready(LIMIT_S)
        client.start()
        assert told.died().outcome.exit_code == 70


def test_a_program_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with client_on(tmp_path, command=(str(tmp_path / "missing"),)) as (client, told):
        outcome = told.died().outcome
        assert outcome.pid == 0
        assert "No such file" in outcome.sentence
        with pytest.raises(EngineUnavailable, match="cannot be started"):
            client.wait_ready(LIMIT_S)


def test_an_engine_of_another_version_is_refused(tmp_path: Path) -> None:
    with client_on(tmp_path, Script(welcome_version=99)) as (_, told):
        assert "version 99" in told.died().outcome.sentence


def test_an_engine_that_never_says_welcome_is_ended_in_time(tmp_path: Path) -> None:
    begun = time.monotonic()
    with client_on(tmp_path, Script(welcome_s=60), limits=LinkLimits(handshake_s=0.3)) as (_, told):
        outcome = told.died().outcome
    assert "0 seconds" in outcome.sentence
    assert time.monotonic() - begun < 20


def test_closing_ends_the_engine_and_fails_what_runs(tmp_path: Path) -> None:
    script = Script(reply="a b c d e f", words_per_s=5)
    with client_on(tmp_path, script) as (client, told):
        pid = told.ready().welcome.pid
        load(client)
        _, box = ask(client)
    died = told.died()
    assert died.outcome.asked
    assert isinstance(all_of(box)[-1], Finished | Failure)
    assert is_gone(pid)


def test_an_engine_that_ignores_the_end_is_ended_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.link.connection.EXIT_GRACE_S", 0.3)
    with client_on(tmp_path, Script(ignores_end=True)) as (client, told):
        pid = told.ready().welcome.pid
        client.close()
    assert told.died().outcome.fault is not None
    assert is_gone(pid)


def test_no_engine_outlives_an_app_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from tests.helpers.link import client_on\n"
        "with client_on(Path(sys.argv[1])) as (client, told):\n"
        "    print(told.ready().welcome.pid, flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE
    ) as app:
        assert app.stdout is not None
        pid = int(app.stdout.readline())
        assert start_time(pid) is not None
        app.kill()
    assert is_gone(pid)


def test_the_engine_inherits_its_pipes_and_no_other_file(tmp_path: Path) -> None:
    kept = os.open(tmp_path / "open", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(kept, True)
    try:
        with client_on(tmp_path) as (client, _):
            pid = client.wait_ready(LIMIT_S).pid
            files = {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
            assert all(name.startswith("pipe:") for name in files), files
            assert os.getpgid(pid) != os.getpgid(0)
    finally:
        os.close(kept)


def test_the_engine_gets_no_secret_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "canary-secret")
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    with client_on(tmp_path) as (client, _):
        pid = client.wait_ready(LIMIT_S).pid
        variables = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"canary-secret" not in variables
    assert b"ATEN_CPU_CAPABILITY=avx2" in variables


def test_a_request_above_a_frame_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    with client_on(tmp_path) as (client, _):
        client.wait_ready(LIMIT_S)
        load(client)
        long = ChatMessage(role="user", text="x" * MAX_FRAME_BYTES)
        with pytest.raises(RequestTooLarge):
            client.generate(Question((long,)), on_message=lambda _: None)
        assert isinstance(all_of(ask(client)[1])[-1], Finished)


def test_a_callback_that_raises_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_message: EngineMessage) -> None:
        raise ValueError("a faulty callback")

    with client_on(tmp_path) as (client, _):
        client.wait_ready(LIMIT_S)
        client.load("/a.gguf", on_message=fail)
        assert isinstance(all_of(ask(client)[1])[-1], Finished)
    assert "a faulty callback" in caplog.text


def test_a_callback_that_blocks_holds_the_engine_back(tmp_path: Path) -> None:
    """The pipe fills: far fewer words are taken than the engine could have sent."""
    taken: list[EngineMessage] = []
    go_on = threading.Event()

    def take(message: EngineMessage) -> None:
        taken.append(message)
        go_on.wait(LIMIT_S)

    script = Script(reply="word" * 20, times=5000)
    with client_on(tmp_path, script) as (client, _):
        client.wait_ready(LIMIT_S)
        load(client)
        begun = time.monotonic()
        client.generate(Question((ChatMessage(role="user", text="x"),)), on_message=take)
        time.sleep(0.2)
        assert len(taken) == 1
        go_on.set()
        while not isinstance(taken[-1], Finished):
            assert time.monotonic() - begun < LIMIT_S
            time.sleep(0.01)
    assert len(taken) == 5000 + 2


def test_a_mailbox_that_nobody_reads_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with client_on(tmp_path, Script(reply="word", times=100)) as (client, _):
        client.wait_ready(LIMIT_S)
        load(client)
        with Mailbox(size=2) as box:
            client.generate(Question((ChatMessage(role="user", text="x"),)), on_message=box.put)
            assert isinstance(next(box.messages(LIMIT_S)), Progress)
        begun = time.monotonic()
    assert time.monotonic() - begun < 10


def test_a_failure_is_an_exception_with_its_sentence(tmp_path: Path) -> None:
    with client_on(tmp_path, Script(load_failure="unsupported-family")) as (client, _):
        client.wait_ready(LIMIT_S)
        with pytest.raises(EngineRefused, match="The fake engine refuses") as caught:
            load(client)
        assert caught.value.failure.code == "unsupported-family"
