"""``hearth plan`` from end to end: the command and our own engine, which loads nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.directories import directories
from app.lock import DirectoryLock
from tests.helpers.hearth import ROOT
from tests.helpers.tiny_gguf import write_script

BUDGET = "Made up,6GiB,5.5GiB"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    models = tmp_path / "profile" / "models"
    models.mkdir(parents=True)
    write_script(models / "tiny.gguf", ["a reply"])
    return tmp_path / "profile"


def plan(profile: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app", "plan", "--data-directory", str(profile), *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def planned(profile: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    ended = plan(profile, "--json", *arguments)
    assert (ended.returncode, ended.stderr) == (code, "")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_an_installed_model_is_planned_beside_an_open_window(profile: Path) -> None:
    with DirectoryLock(directories(profile).lock_file, "the window"):
        found = planned(profile, "tiny", "--chats", "2")
    assert (found["fits"], found["context_tokens"], found["streams"]) == (True, 4096, 2)
    assert (found["placement"], found["kv_format"], found["chunk_rows"]) == (
        *("resident", "fp16", 256),
    )
    assert found["states"] == 8
    (host,) = [line for line in found["lines"] if line["owner"] == "kept states in memory"]
    assert found["host_state_bytes"] == host["bytes"] > 0
    assert found["device"].startswith("CPU, ")
    (ram,) = found["pools"]
    assert ram["needed_bytes"] == sum(line["bytes"] for line in found["lines"])
    assert all(line["reason"] for line in found["lines"])
    text = plan(profile, str(profile / "models" / "tiny.gguf")).stdout
    assert "weights" in text
    assert "Fits: context 4,096 tokens, 4 of 4 chats at once" in text


def test_a_made_up_gpu_is_planned_for_and_refused_to_the_byte(profile: Path) -> None:
    found = planned(profile, "tiny", "--gpu", BUDGET, "--context", "2048", "--kv", "fp8")
    assert found["device"] == "GPU, Made up"
    assert [pool["name"] for pool in found["pools"]] == ["gpu0", "ram", "pinned"]
    assert (found["kv_format"], found["context_tokens"]) == ("fp8", 2048)
    # Of a GPU a GiB at least is left to other programs.
    free = 1 << 30
    refused = planned(profile, "tiny", "--gpu", f"x,6GiB,{free}", "--chats", "1", code=1)
    assert refused["refusal"]
    assert refused["pools"][0]["free_bytes"] == 0
    least = refused["pools"][0]["needed_bytes"]
    exact = planned(profile, "tiny", "--gpu", f"x,6GiB,{free + least}", "--chats", "1")
    assert exact["pools"][0]["needed_bytes"] <= least
    short = plan(profile, "tiny", "--gpu", f"x,6GiB,{free + least - 1}", "--chats", "1")
    assert short.returncode == 1
    assert "Does not fit:" in short.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing-of-that-name",), "nothing-of-that-name"),
        (("models/none.gguf",), "There is no model file"),
        (("tiny", "--gpu", "x"), "describes no GPU"),
        (("tiny", "--context", "-1"), "not a whole number"),
    ],
)
def test_bad_input_is_one_sentence(profile: Path, arguments: tuple[str, ...], words: str) -> None:
    ended = plan(profile, *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
