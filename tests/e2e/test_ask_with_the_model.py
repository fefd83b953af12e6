"""``hearth ask`` from end to end: the command, our own engine, the starter model."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.link.process import engine_command
from app.lock import start_time
from tests.fuzz import kills
from tests.helpers.hearth import ROOT
from tests.helpers.models import smol_path

LONG = "The river ran past the mill and the people walked along it in the evening. " * 470


STORY = f"Here is a story. {LONG[: len(LONG) // 14]} What ran past the mill?"
GRID = 256
"""States end at multiples of this, or of a part of it."""


def command(folder: Path, *arguments: str) -> list[str]:
    """``hearth ask`` on a profile of its own, greedily."""
    common = ["--data-directory", str(folder), "--model", str(smol_path()), "--temperature", "0"]
    return [sys.executable, "-m", "app", "ask", *common, *arguments]


def ask(folder: Path, *arguments: str) -> bytes:
    """Ask; what came on stdout."""
    return subprocess.run(
        command(folder, *arguments), cwd=ROOT, check=True, capture_output=True, timeout=300
    ).stdout


def states(folder: Path, *arguments: str) -> dict[str, Any]:
    """What ``hearth states`` prints."""
    program = [sys.executable, "-m", "app", "states", "--data-directory", str(folder), "--json"]
    ended = subprocess.run(
        [*program, *arguments], cwd=ROOT, check=True, capture_output=True, timeout=60
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@contextmanager
def asking(folder: Path, *arguments: str, stdin: str) -> Iterator[subprocess.Popen[bytes]]:
    """A running command whose question has been handed over."""
    with subprocess.Popen(
        command(folder, *arguments), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        child.stdin.write(stdin.encode())
        child.stdin.close()
        yield child


def wait_for_log(folder: Path, words: str) -> str:
    """Wait until the engine's log has these words."""
    file, until = folder / "logs" / "engine.log", time.monotonic() + 300
    while not file.exists() or words not in (text := file.read_text()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return text


def test_a_stored_conversation_is_answered_and_followed_up(tmp_path: Path) -> None:
    first = ask(tmp_path, "--chat", "travel", "What is the capital of France?")
    assert b"Paris" in first
    second = json.loads(ask(tmp_path, "--chat", "travel", "--json", "And of Italy?"))
    assert "Rome" in second["text"]
    assert second["prompt_tokens"] > 37 + second["completion_tokens"]
    assert second["decode_tok_s"] > 0
    assert second["ttft_ms"] > 0
    log = (tmp_path / "logs" / "engine.log").read_text()
    assert "Italy" not in log and "Paris" not in log, "a log holds no word of a conversation"


def test_the_next_process_goes_on_from_the_disk_with_the_reply_that_a_fresh_one_gives(
    tmp_path: Path,
) -> None:
    kept, fresh = tmp_path / "kept", tmp_path / "fresh"
    asked = ("--chat", "story", "--json", "--max-tokens", "24")
    first = json.loads(ask(kept, *asked, STORY))
    assert first["prompt_tokens"] > 300
    assert (first["resumed_tokens"], first["resumed_from"]) == (0, "none")
    shutil.copytree(kept, fresh, ignore=shutil.ignore_patterns("states"))
    resumed = json.loads(ask(kept, *asked, "Who walked there?"))
    read = json.loads(ask(fresh, *asked, "Who walked there?"))
    assert (read["resumed_tokens"], read["resumed_from"]) == (0, "none")
    assert resumed["resumed_from"] == "disk"
    assert resumed["resumed_tokens"] >= first["prompt_tokens"] // GRID * GRID
    assert resumed["resumed_bytes"] > 0 and resumed["resumed_ms"] > 0
    assert resumed["reason"] is None
    for fact in ("token_ids", "text", "prompt_tokens", "dropped_messages"):
        assert resumed[fact] == read[fact], fact


def test_what_is_kept_is_listed_by_its_chat_and_read_again_once_it_is_cleared(
    tmp_path: Path,
) -> None:
    asked = ("--chat", "story", "--json", "--max-tokens", "8")
    ask(tmp_path, *asked, STORY)
    found = states(tmp_path)
    (line,) = [s for s in found["states"] if s["chat"] == "story"]
    assert (line["tier"], line["pinned"]) == ("disk", False)
    assert line["tokens"] >= GRID and line["bytes"] > 0
    assert found["disk_bytes"] > 0
    assert [s["pinned"] for s in states(tmp_path, "--pin", "story")["states"]] == [True]
    assert [s["pinned"] for s in states(tmp_path)["states"]] == [True], "it outlives the process"
    assert states(tmp_path, "--clear", "story")["states"] == []
    again = json.loads(ask(tmp_path, *asked, "Who walked there?"))
    assert (again["resumed_tokens"], again["resumed_from"]) == (0, "none")


def test_ctrl_c_while_a_long_prompt_is_read_stops_it(tmp_path: Path) -> None:
    with asking(tmp_path, "--json", "-", stdin=LONG) as child:
        log = wait_for_log(tmp_path, "stream opened")
        pid = int(log.split("engine started pid=")[1].split()[0])
        child.send_signal(signal.SIGINT)
        assert child.stdout is not None
        found = json.loads(child.stdout.read())
        assert child.wait() == 130
    assert found["stop_reason"] == "stopped"
    assert found["prompt_tokens"] > 7000
    assert found["token_ids"] == []
    assert start_time(pid) is None, "no engine is left"


def test_after_a_kill_of_our_engine_the_next_answer_is_the_same(tmp_path: Path) -> None:
    seen = kills.run(2, 3, engine_command(tmp_path), str(smol_path()), tmp_path)
    assert len(seen.recovery_s) == 2
