"""``hearth models``, ``doctor`` and ``bench`` as child processes over the fake engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.directories import directories
from app.lock import DirectoryLock
from tests.helpers.fake_engine import Script
from tests.helpers.hearth import hearth


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    models = tmp_path / "profile" / "models"
    models.mkdir(parents=True)
    (models / "good.gguf").write_bytes(b"GGUF")
    (models / "bad.gguf").write_bytes(b"nothing")
    return tmp_path / "profile"


def test_models_lists_what_is_there_and_what_is_wrong_with_it(profile: Path) -> None:
    with DirectoryLock(directories(profile).lock_file, "the window"):
        ended = hearth(Script(), "models", "--data-directory", profile, "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    bad, good = found["models"]
    assert (good["name"], good["usable"], good["context_tokens"]) == ("good", True, 8192)
    assert (bad["name"], bad["usable"]) == ("bad", False)
    assert "not a GGUF file" in bad["problem"]
    text = hearth(Script(), "models", "--data-directory", profile).out.decode()
    assert len(text.splitlines()) == 2


def test_a_named_file_is_told_in_full(profile: Path) -> None:
    good, bad = profile / "models" / "good.gguf", profile / "models" / "bad.gguf"
    ended = hearth(Script(), "models", "--json", good)
    assert ended.code == 0
    (line,) = json.loads(ended.out)["models"]
    wanted = {
        "family": "fake",
        "parameters": 134_515_008,
        "format_bytes": {"Q4_1": 66_355_200, "F32": 140_544},
        "has_vision": True,
        "step_bytes": 96_576_768,
        "kv_token_bytes": 23_040,
        "sliding_token_bytes": 512,
        "sliding_bytes": 262_144,
        "recurrent_bytes": 1_048_576,
        "file_bytes": 4,
        "usable": True,
    }
    assert {key: line[key] for key in wanted} == wanted
    text = hearth(Script(), "models", good, bad).out.decode()
    for words in (
        "134,515,008 parameters: Q4_1 63.28 MiB, F32 137.25 KiB",
        "reads 92.10 MiB of weights",
        "22.50 KiB of K and V",
        "512 bytes in sliding layers, 256.00 KiB at most",
        "recurrent state of 1.00 MiB",
        "not a GGUF file",
    ):
        assert words in text
    missing = hearth(Script(), "models", profile / "models" / "none.gguf")
    assert missing.code == 2
    assert "There is no model file" in missing.err


def test_models_of_an_empty_profile_starts_no_engine(tmp_path: Path) -> None:
    script = Script(end_at="start", end_how="exit")
    ended = hearth(script, "models", "--data-directory", tmp_path)
    assert ended.code == 0
    assert b"No model is installed" in ended.out


def test_the_doctor_reports_without_the_lock_and_makes_nothing(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    ended = hearth(Script(), "doctor", "--data-directory", profile, "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    assert found["engine"]["capabilities"] == ["avx2", "avx512-bf16", "chosen: int4 bf16"]
    assert found["machine"]["packages"]["torch"]
    assert found["in_use_by"] is None
    assert not profile.exists()


def test_the_doctor_goes_on_when_the_engine_does_not_start(profile: Path) -> None:
    script = Script(end_at="start", end_how="exit", log_line="ImportError: no such library")
    with DirectoryLock(directories(profile).lock_file, "the window"):
        ended = hearth(script, "doctor", "--data-directory", profile)
    assert ended.code == 1
    text = ended.out.decode()
    assert "ImportError: no such library" in text
    assert "In use by    the window" in text
    assert "Traceback" not in ended.err


def test_bench_prints_rates_and_the_peers_beside_them(profile: Path, tmp_path: Path) -> None:
    peer = tmp_path / "llama-bench"
    peer.write_text("""#!/bin/sh\necho '[{"n_prompt": 1, "n_gen": 1, "avg_ts": 50.0}]'\n""")
    peer.chmod(0o755)
    arguments = ("bench", "--data-directory", profile, "--model", "good", "--runs", "2")
    script = Script(reply="word", times=50, words_per_s=500)
    ended = hearth(script, *arguments, "--peer", peer, "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert (found["prompt_tokens"], found["reply_tokens"], found["runs"]) == (512, 50, 2)
    assert found["decode"]["lowest"] <= found["decode"]["median"] <= 600
    assert found["peer_prefill"]["median"] == found["peer_decode"]["median"] == 50.0
    assert found["on_gpu"] is False
    assert 0 <= found["first_token_ms"]["lowest"] <= found["first_token_ms"]["highest"]
    table = hearth(script, *arguments, "--peer", peer).out.decode()
    assert "llama.cpp" in table
    assert "ratio" in table
    assert "first token after" in table
    assert hearth(script, *arguments, "--peer", "/no/such/program").code == 2
