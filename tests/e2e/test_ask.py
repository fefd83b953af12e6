"""``hearth ask`` as a child process over the fake engine: bytes, codes, sentences, no leftovers."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from app.chat.conversation import TurnState
from app.chat.store import open_store
from app.directories import directories
from app.lock import DirectoryLock
from tests.helpers.fake_engine import DEFAULT_REPLY, Script
from tests.helpers.fake_script import Resume
from tests.helpers.hearth import ROOT, Ended, command, hearth, started_hearth

SLOW = Script(reply="word", times=2000, words_per_s=100)
KEYS = [
    "text", "thinking_text", "token_ids", "prompt_tokens", "completion_tokens", "resumed_tokens",
    "resumed_from", "resumed_bytes", "resumed_ms", "reason", "dropped_messages", "ttft_ms",
    "load_ms", "prefill_tok_s", "decode_tok_s", "stop_reason", "model", "seed",
]  # fmt: skip


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A data directory with one model in it."""
    models = tmp_path / "profile" / "models"
    models.mkdir(parents=True)
    (models / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    return tmp_path / "profile"


def ask(
    profile: Path, *arguments: str | bytes, script: Script | None = None, stdin: bytes = b""
) -> Ended:
    told = script if script is not None else Script()
    return hearth(told, "ask", "--data-directory", profile, *arguments, stdin=stdin)


def strict(text: bytes) -> dict[str, object]:
    """A JSON object without NaN or Infinity."""

    def refuse(word: str) -> object:
        raise AssertionError(word)

    found = json.loads(text, parse_constant=refuse)
    assert isinstance(found, dict)
    return found


def engines(profile: Path) -> list[str]:
    """The engines that still run for this profile's tests."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if b"tests.helpers.fake_engine" in line and str(profile).encode() in line:
                found.append(folder.name)
    return found


def marked(script: Script, profile: Path) -> Script:
    """The script, with the profile's name in it, so that ``engines`` finds its child."""
    return msgspec.structs.replace(script, log_line=str(profile))


def test_stdout_is_the_replys_bytes_and_nothing_else(profile: Path) -> None:
    ended = ask(profile, "What?", script=Script(reply="Grüße\n\n\x1b[0m *x*"))
    assert ended.out == "Grüße\n\n\x1b[0m *x*".encode()
    assert (ended.code, ended.err) == (0, "")


def test_the_reply_is_streamed_as_it_comes(profile: Path) -> None:
    script = Script(reply="word", times=20, words_per_s=20)
    with started_hearth(script, "ask", "--data-directory", profile, "x") as child:
        assert child.stdout is not None
        assert child.stdout.read(4) == b"word"
        first = time.monotonic()
        child.stdout.read()
        assert time.monotonic() - first > 0.5
        assert child.wait() == 0


def test_json_is_one_object_with_exactly_the_keys(profile: Path) -> None:
    ended = ask(profile, "--json", "--seed", "11", "What is it")
    found = strict(ended.out)
    assert list(found) == KEYS
    assert found["text"] == DEFAULT_REPLY
    assert (found["prompt_tokens"], found["completion_tokens"], found["seed"]) == (3, 6, 11)
    assert found["model"] == "SmolLM2-135M-Instruct.Q4_1"
    assert found["stop_reason"] == "end-of-turn"
    assert ended.out.endswith(b"}\n")


@pytest.mark.parametrize("limit", [0, 1])
def test_what_was_not_measured_is_null(profile: Path, limit: int) -> None:
    found = strict(ask(profile, "--json", "--max-tokens", str(limit), "x").out)
    assert found["completion_tokens"] == limit
    assert found["decode_tok_s"] is None
    assert (found["ttft_ms"] is None) is (limit == 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["  \n "], "question is empty"),
        (["--temperature", "nan", "x"], "not a number from 0 up"),
        (["--model", "no-such", "x"], "No model is called"),
        (["--model", "./no.gguf", "x"], "no model file"),
    ],
)
def test_bad_input_is_one_sentence_and_code_two(
    profile: Path, arguments: list[str], words: str
) -> None:
    ended = ask(profile, *arguments)
    assert (ended.code, ended.out) == (2, b"")
    assert words in ended.err
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err


def test_a_profile_without_a_model_says_what_to_do(tmp_path: Path) -> None:
    ended = ask(tmp_path / "empty", "x")
    assert ended.code == 2
    assert "No model is installed" in ended.err


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (Script(load_failure="checkpoint-unreadable"), "fake engine refuses"),
        (Script(reply_failure="template-failed"), "fake engine refuses"),
        (Script(end_at="start", end_how="exit"), "stopped while it was starting"),
        (Script(end_at="load"), "ended the engine"),
        (Script(end_at="reply", end_after=2), "ended the engine"),
    ],
)
def test_a_failure_is_one_sentence_and_code_one(profile: Path, script: Script, words: str) -> None:
    ended = ask(profile, "x", script=script)
    assert ended.code == 1
    assert words in ended.err
    assert ended.err.count("\n") == 1


def test_what_the_engine_calls_invalid_is_bad_input(profile: Path) -> None:
    assert ask(profile, "--raw", "", script=Script(reply_failure="request-invalid")).code == 2


def test_the_system_prompt_is_sent_also_when_it_is_empty(profile: Path) -> None:
    script = Script(reply="{messages}")
    assert ask(profile, "hi", script=script).out == b"user:hi"
    assert ask(profile, "--system", "", "hi", script=script).out == b"system:|user:hi"
    assert ask(profile, "--system", "Brief.", "hi", script=script).out == b"system:Brief.|user:hi"


def test_standard_input_is_the_question(profile: Path) -> None:
    echo = Script(reply="{echo}")
    assert ask(profile, "-", script=echo, stdin="Grüße\n".encode()).out == "Grüße".encode()
    assert ask(profile, "--raw", "-", script=echo, stdin=b"a\n").out == b"a\n"
    assert ask(profile, "-", stdin=b"").code == 2


def test_a_bad_byte_becomes_a_replacement_and_is_told_with_its_offset(profile: Path) -> None:
    echo = Script(reply="{echo}")
    ended = ask(profile, "-", script=echo, stdin=b"hi \xe6\xad")
    assert (ended.code, ended.out) == (0, "hi \ufffd".encode())
    assert "offset 3" in ended.err
    assert ask(profile, b"hi \xff x", script=echo).out == "hi \ufffd x".encode()


def test_a_closed_pipe_ends_it_quietly(profile: Path) -> None:
    script = marked(SLOW, profile)
    with started_hearth(script, "ask", "--data-directory", profile, "x") as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.read(4)
        child.stdout.close()
        assert child.wait(10) == 0
        assert child.stderr.read() == b""
    assert engines(profile) == []


def test_a_full_stdout_is_told(profile: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            command(Script(), "ask", "--data-directory", profile, "x"),
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, cwd=ROOT, check=False,
        )  # fmt: skip
    assert ended.returncode == 1
    assert b"cannot be written: No space left" in ended.stderr


def interrupted(profile: Path, *arguments: str, script: Script = SLOW) -> Ended:
    """Ask, press Ctrl+C once the reply has begun (or the engine runs, for --json)."""
    script = marked(script, profile)
    with started_hearth(script, "ask", "--data-directory", profile, *arguments, "x") as child:
        assert child.stdout is not None and child.stderr is not None
        seen = b""
        if "--json" in arguments:
            while not engines(profile):
                time.sleep(0.02)
            time.sleep(0.5)
        else:
            seen = child.stdout.read(9)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=10)
        return Ended(child.returncode, seen + out, err.decode())


def test_ctrl_c_stops_the_reply_and_keeps_what_came(profile: Path) -> None:
    begun = time.monotonic()
    ended = interrupted(profile, "--chat", "c")
    assert time.monotonic() - begun < 20
    assert ended.code == 130
    assert re.fullmatch(rb"word( word)+", ended.out)
    assert "Traceback" not in ended.err
    assert engines(profile) == []
    with open_store(directories(profile).store_file).store as store:
        (entry,) = store.conversations.titled("c")
        reply = store.conversations.read(entry.id).path()[-1]
    assert reply.state is TurnState.STOPPED
    assert reply.text.encode() == ended.out
    assert len(reply.ids) == len(reply.text.split())


def test_ctrl_c_still_prints_the_object(profile: Path) -> None:
    ended = interrupted(profile, "--json")
    assert ended.code == 130
    assert strict(ended.out)["stop_reason"] == "stopped"


@pytest.mark.parametrize("script", [Script(load_s=30), Script(welcome_s=30), Script(prompt_s=30)])
def test_ctrl_c_before_the_reply_leaves_no_engine(profile: Path, script: Script) -> None:
    begun = time.monotonic()
    assert interrupted(profile, "--json", script=script).code == 130
    assert time.monotonic() - begun < 20
    assert engines(profile) == []


def test_a_conversation_goes_on_by_its_name(profile: Path) -> None:
    script = Script(reply="{messages}")
    assert ask(profile, "--chat", "trip", "--system", "S", "one").out.decode() == DEFAULT_REPLY
    second = ask(profile, "--chat", "trip", "two", script=script).out.decode()
    assert second == f"system:S|user:one|assistant:{DEFAULT_REPLY}|user:two"
    with open_store(directories(profile).store_file).store as store:
        (entry,) = store.conversations.entries()
        chat = store.conversations.read(entry.id)
    assert chat.title == "trip"
    assert [t.role for t in chat.path()] == ["user", "assistant", "user", "assistant"]
    facts = chat.path()[-1].reply
    assert facts is not None
    assert (facts.model_name, facts.seed) == ("SmolLM2-135M-Instruct.Q4_1", 7)


def test_json_says_from_where_the_prompt_was_resumed(profile: Path) -> None:
    resume = Resume(tokens=2, tier="disk", bytes=590, ms=1.5, reason="edited")
    found = strict(ask(profile, "--chat", "c", "--json", "x", script=Script(resume=resume)).out)
    assert (found["resumed_tokens"], found["resumed_from"]) == (2, "disk")
    assert (found["resumed_bytes"], found["resumed_ms"]) == (590, 1.5)
    assert (found["reason"], found["dropped_messages"]) == ("edited", 0)
    fresh = strict(ask(profile, "--json", "x").out)
    assert (fresh["resumed_tokens"], fresh["resumed_from"], fresh["reason"]) == (0, "none", None)


def test_what_no_longer_fits_is_told_and_left_out_from_then_on(profile: Path) -> None:
    ask(profile, "--chat", "c", "one")
    full = Script(resume=Resume(dropped_messages=2))
    ended = ask(profile, "--chat", "c", "--json", "two", script=full)
    assert strict(ended.out)["dropped_messages"] == 2
    told = "hearth: The 2 oldest messages no longer fit and are not seen by the model.\n"
    assert ended.err == told
    after = ask(profile, "--chat", "c", "three", script=Script(reply="{messages}"))
    assert after.out.decode() == f"user:two|assistant:{DEFAULT_REPLY}|user:three"
    assert after.err == told


def test_a_chat_waits_for_its_state_to_be_written_after_the_reply_is_printed(
    profile: Path,
) -> None:
    script = Script(settle_s=1.0)
    with started_hearth(script, "ask", "--data-directory", profile, "--chat", "c", "x") as child:
        assert child.stdout is not None
        assert child.stdout.read(len(DEFAULT_REPLY)).decode() == DEFAULT_REPLY
        printed = time.monotonic()
        assert child.wait() == 0
        assert time.monotonic() - printed > 0.8


def test_without_a_chat_nothing_is_waited_for(profile: Path) -> None:
    begun = time.monotonic()
    assert ask(profile, "x", script=Script(settle_s=8.0)).code == 0
    assert time.monotonic() - begun < 6


def test_ctrl_c_ends_the_wait_for_the_state_and_loses_nothing(profile: Path) -> None:
    script = marked(Script(settle_s=9.0), profile)
    with started_hearth(script, "ask", "--data-directory", profile, "--chat", "c", "x") as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.read(len(DEFAULT_REPLY))
        time.sleep(0.5)
        pressed = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == 0
        assert time.monotonic() - pressed < 4
        assert child.stderr.read() == b""
    assert engines(profile) == []
    with open_store(directories(profile).store_file).store as store:
        reply = store.conversations.read(store.conversations.entries()[0].id).path()[-1]
    assert (reply.state, reply.text) == (TurnState.WHOLE, DEFAULT_REPLY)


def test_an_engine_that_dies_while_it_writes_does_not_fail_the_reply(profile: Path) -> None:
    script = Script(settle_s=9.0, end_at="settle")
    assert ask(profile, "--chat", "c", "x", script=script).code == 0


def test_the_engine_is_told_which_chat_is_open(profile: Path, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    ask(profile, "--chat", "c", "x", script=Script(heard=str(heard)))
    told = [json.loads(line) for line in heard.read_text().splitlines()]
    assert {"type": "OpenChats", "conversations": ["1"]} in told


def test_the_engine_gets_the_quota_of_the_settings(profile: Path) -> None:
    (profile / "settings.toml").write_text("states_quota_gb = 0\nallow_8bit_kv = true\n")
    heard = profile / "heard"
    ended = ask(profile, "x", script=Script(reply="{arguments}", heard=str(heard)))
    assert ended.out == b"--state-quota-bytes 0"
    assert json.loads(heard.read_text().splitlines()[0])["kv"] == "full-or-fp8"


def test_a_question_is_on_disk_although_the_engine_died(profile: Path) -> None:
    assert ask(profile, "--chat", "c", "keep me", script=Script(end_at="reply")).code == 1
    with open_store(directories(profile).store_file).store as store:
        chat = store.conversations.read(store.conversations.entries()[0].id)
    asked, reply = chat.path()
    assert asked.text == "keep me"
    assert (reply.state, reply.text) == (TurnState.FAILED, "The capital of")


def test_names_of_two_conversations_are_refused(profile: Path) -> None:
    with open_store(directories(profile).store_file).store as store:
        store.conversations.create(title="twin")
        store.conversations.create(title="twin")
    ended = ask(profile, "--chat", "twin", "x")
    assert ended.code == 2
    assert "2 conversations" in ended.err


def test_while_the_window_is_open_it_is_refused_and_the_window_named(profile: Path) -> None:
    with DirectoryLock(directories(profile).lock_file, "the window"):
        ended = ask(profile, "x")
    assert (ended.code, ended.out) == (1, b"")
    assert "the window" in ended.err
    assert ended.err.count("\n") == 1
    assert ask(profile, "x").code == 0


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    ended = ask(tmp_path / "file" / "data", "x")
    assert ended.code == 1
    assert str(tmp_path / "file" / "data") in ended.err
    assert "Traceback" not in ended.err


def test_a_terminal_gets_no_escape_codes_of_the_model_and_a_line_end(profile: Path) -> None:
    parent, child = pty.openpty()
    script = Script(reply="a\x1b[31mb")
    ended = subprocess.run(
        command(script, "ask", "--data-directory", profile, "x"),
        stdin=subprocess.DEVNULL, stdout=child, stderr=subprocess.PIPE, cwd=ROOT, check=True,
    )  # fmt: skip
    os.close(child)
    assert os.read(parent, 1000) == "a\ufffd[31mb\r\n".encode()
    os.close(parent)
    assert ended.stderr == b""


def test_data_are_private_to_the_user(profile: Path) -> None:
    ask(profile, "--chat", "c", "x")
    made = [p for p in profile.rglob("*") if "models" not in p.parts]
    assert made
    assert all(p.stat().st_mode & 0o077 == 0 for p in made), made


def test_neither_torch_nor_qt_is_loaded_for_a_question(profile: Path) -> None:
    program = (
        "import sys; from tests.helpers.fake_engine import fake_command\n"
        "from app.cli.main import main\n"
        "code = main(sys.argv[1:], make_command=lambda _: fake_command())\n"
        "assert code == 0 and not {'torch', 'PySide6', 'triton'} & set(sys.modules)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, "ask", "--data-directory", profile, "x"],
        cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
