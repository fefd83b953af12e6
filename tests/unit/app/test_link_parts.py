"""What the link decides and remembers, without a process: back-off, guard, log, sentences."""

from __future__ import annotations

import signal
import stat
from pathlib import Path

import pytest

from app.errors import MemoryRefusal, failure_sentence, gibibytes, memory_refusal
from app.link.deaths.crash_guard import CrashGuard, LoadTrack
from app.link.deaths.restart import BACK_OFF_S, RestartPolicy
from app.link.engine_log import EngineLog
from app.link.events import LoadChoice, LoadWish
from app.link.outcome import ProcessOutcome
from app.link.process import engine_command, engine_environment
from engine.protocol import Failure


def outcome(
    *, ready: bool = True, asked: bool = False, killed_by: int | None = None,
    exit_code: int | None = None, fault: str | None = None, pid: int = 5,
) -> ProcessOutcome:  # fmt: skip
    return ProcessOutcome(
        pid=pid, exit_code=exit_code, signal=killed_by, lived_s=1.0, ready=ready, asked=asked,
        fault=fault, log_tail=("the last line",),
    )  # fmt: skip


# Back-off ----------------------------------------------------------------------------------------


def test_waits_grow_with_deaths_in_a_row_and_stay_at_the_longest() -> None:
    policy = RestartPolicy()
    waits = [policy.delay_s(ready=True, useful=False, lived_s=1) for _ in range(8)]
    assert waits == [*BACK_OFF_S, BACK_OFF_S[-1], BACK_OFF_S[-1]]


@pytest.mark.parametrize(("useful", "lived_s"), [(True, 1.0), (False, 61.0)])
def test_a_life_that_was_of_use_or_long_ends_the_row(useful: bool, lived_s: float) -> None:
    policy = RestartPolicy()
    for _ in range(4):
        policy.delay_s(ready=True, useful=False, lived_s=1)
    assert policy.delay_s(ready=True, useful=useful, lived_s=lived_s) == BACK_OFF_S[0]


def test_three_starts_without_a_handshake_are_enough() -> None:
    policy = RestartPolicy()
    waits = [policy.delay_s(ready=False, useful=False, lived_s=1) for _ in range(4)]
    assert waits == [0.2, 1.0, None, 2.0]
    policy.delay_s(ready=True, useful=True, lived_s=1)
    assert policy.delay_s(ready=False, useful=False, lived_s=1) is not None


# Guard -------------------------------------------------------------------------------------------


def test_a_checkpoint_is_held_back_after_two_deaths_also_by_the_next_app(tmp_path: Path) -> None:
    file, model = tmp_path / "crashes.json", tmp_path / "m.gguf"
    model.write_bytes(b"1234")
    guard = CrashGuard(file)
    guard.count(str(model))
    assert guard.allows(str(model))
    CrashGuard(file).count(str(model))
    again = CrashGuard(file)
    assert not again.allows(str(model))
    assert again.allows("/another.gguf")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again.clear(str(model))
    assert CrashGuard(file).allows(str(model))


def test_a_file_of_another_size_is_another_checkpoint(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"1234")
    guard = CrashGuard(tmp_path / "crashes.json")
    guard.count(str(model))
    guard.count(str(model))
    model.write_bytes(b"12345")
    assert guard.allows(str(model))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[{}]"])
def test_a_damaged_crash_file_is_ignored_and_written_anew(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "crashes.json"
    file.write_bytes(content)
    guard = CrashGuard(file)
    assert "crash file ignored" in caplog.text
    guard.count("/m.gguf")
    guard.count("/m.gguf")
    assert not CrashGuard(file).allows("/m.gguf")


def test_what_was_loaded_is_wanted_back_once(tmp_path: Path) -> None:
    track = LoadTrack(CrashGuard(tmp_path / "c"))
    choice = LoadChoice("/m.gguf")
    track.asked(1, choice)
    assert track.loaded_path is None
    track.arrived(1)
    assert track.loaded_path == "/m.gguf"
    track.ended(outcome(killed_by=9))
    assert track.loaded_path is None
    assert track.take_back() == (choice, None)
    assert track.take_back() == (None, None)


def test_a_life_that_never_began_keeps_the_wish_of_the_one_before(tmp_path: Path) -> None:
    track = LoadTrack(CrashGuard(tmp_path / "c"))
    choice = LoadChoice("/m.gguf", LoadWish(context_tokens=4096, streams=2))
    track.asked(1, choice)
    track.ended(outcome(killed_by=11))
    track.ended(outcome(ready=False, exit_code=1))
    assert track.take_back() == (choice, None)


def test_an_end_that_was_asked_for_is_not_counted(tmp_path: Path) -> None:
    guard = CrashGuard(tmp_path / "c")
    track = LoadTrack(guard)
    for request in range(3):
        track.asked(request, LoadChoice("/m.gguf"))
        track.ended(outcome(asked=True, exit_code=0))
    assert guard.allows("/m.gguf")


def test_a_finished_reply_clears_the_loaded_checkpoint(tmp_path: Path) -> None:
    guard = CrashGuard(tmp_path / "c")
    track = LoadTrack(guard)
    for request in range(5):
        track.asked(request, LoadChoice("/m.gguf"))
        track.arrived(request)
        track.finished()
        track.ended(outcome(killed_by=9))
    assert guard.allows("/m.gguf")


def test_a_refused_load_leaves_nothing_loaded_and_one_not_sent_changes_nothing(
    tmp_path: Path,
) -> None:
    track = LoadTrack(CrashGuard(tmp_path / "c"))
    track.asked(1, LoadChoice("/a.gguf"))
    track.arrived(1)
    track.refused(7)
    track.asked(2, LoadChoice("/b.gguf"))
    track.withdrawn(2)
    assert track.loaded_path == "/a.gguf"
    track.asked(3, LoadChoice("/b.gguf"))
    track.refused(3)
    assert track.loaded_path is None
    track.asked(4, LoadChoice("/a.gguf"))
    track.arrived(4)
    track.unloaded()
    assert track.loaded_path is None


# Log ---------------------------------------------------------------------------------------------


def test_the_log_keeps_its_last_lines_and_rotates_its_file(tmp_path: Path) -> None:
    log = EngineLog(tmp_path / "logs" / "engine.log", limit_bytes=100, kept_files=3, kept_lines=5)
    for number in range(40):
        log.write(f"line {number}\n".encode())
    log.close()
    assert log.tail(2) == ("line 38", "line 39")
    assert len(log.tail(100)) == 5
    names = sorted(file.name for file in (tmp_path / "logs").iterdir())
    assert names == ["engine.log", "engine.log.1", "engine.log.2"]
    for file in (tmp_path / "logs").iterdir():
        assert file.stat().st_size <= 100
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (tmp_path / "logs" / "engine.log").read_text().endswith("line 39\n")


def test_a_log_of_before_is_continued(tmp_path: Path) -> None:
    for word in ("one", "two"):
        log = EngineLog(tmp_path / "engine.log")
        log.write(word.encode())
        log.close()
    assert (tmp_path / "engine.log").read_text() == "one\ntwo\n"


def test_a_log_that_cannot_be_written_keeps_its_lines_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    log = EngineLog(tmp_path / "file" / "engine.log")
    log.write(b"\xff seen\r\n")
    assert log.tail() == ("\ufffd seen",)
    assert log.failure is not None
    log.close()


# Sentences ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (outcome(asked=True, exit_code=0), "was stopped"),
        (outcome(pid=0, fault="No such file."), "cannot be started: No such file"),
        (outcome(fault="it said Welcome twice."), "Welcome twice"),
        (outcome(ready=False, exit_code=3), "while it was starting"),
        (outcome(killed_by=int(signal.SIGKILL)), "memory runs out"),
        (outcome(exit_code=70), "stopped unexpectedly"),
    ],
)
def test_an_end_has_one_sentence_without_a_number_of_the_system(
    facts: ProcessOutcome, words: str
) -> None:
    assert words in facts.sentence
    assert not any(c.isdigit() for c in facts.sentence)
    assert "the last line" in facts.detail


def test_details_name_the_signal_or_the_code() -> None:
    assert "SIGSEGV" in outcome(killed_by=int(signal.SIGSEGV)).detail
    assert "exit code 70" in outcome(exit_code=70).detail
    assert outcome(asked=True, exit_code=0).clean
    assert not outcome(asked=True, exit_code=1).clean


def test_the_app_has_better_sentences_for_some_failures() -> None:
    numbers: dict[str, int | float | str] = {"needed_bytes": 14 * 2**30, "free_bytes": 2**29}
    refused = Failure(code="memory-refused", sentence="raw", numbers=numbers)
    assert failure_sentence(refused).startswith("Needs 14.0 GiB; 512 MiB is free.")
    assert failure_sentence(Failure(code="memory-refused", sentence="raw")) == "raw"
    told = "Weights need 14.0 GiB of memory; 0.5 GiB are free. Held: a chat 3.0."
    full = Failure(code="memory-refused", sentence=told, numbers=numbers)
    assert failure_sentence(full) == told
    assert failure_sentence(Failure(code="never-heard-of", sentence="raw")) == "raw"
    assert "Your chat is intact" in failure_sentence(Failure(code="engine-died", sentence="raw"))


def test_a_refusal_for_want_of_memory_keeps_its_numbers() -> None:
    numbers: dict[str, int | float | str] = {
        "needed_bytes": 2**31 + 1, "free_bytes": 2**31 - 1, "pool": "gpu1",
        "others_bytes": 2**30, "fitting_context_tokens": 16384,
    }  # fmt: skip
    found = memory_refusal(Failure(code="memory-refused", sentence="raw", numbers=numbers))
    assert found == MemoryRefusal(2**31 + 1, 2**31 - 1, "gpu1", 2**30, 16384)
    assert found.sentence == (
        "Needs 2.1 GiB; 1.9 GiB is free on GPU 1. Other programs hold 1.0 GiB. "
        "A context of 16,384 tokens would fit."
    )
    for pool, place in (("ram", " in memory"), ("disk", " in disk"), ("gpu", " on GPU"), ("", "")):
        assert f"0 MiB is free{place}." in MemoryRefusal(1, 0, pool).sentence
    assert memory_refusal(Failure(code="internal", sentence="raw", numbers=numbers)) is None
    odd = Failure(code="memory-refused", sentence="raw", numbers={"needed_bytes": "much"})
    assert memory_refusal(odd) is None


@pytest.mark.parametrize(
    "count", [1, 2**20 - 1, 2**20, 2**30 - 1, 2**30, 5 * 2**30 // 4, 2**37 + 3]
)
def test_what_is_needed_is_rounded_up_and_what_is_free_down(count: int) -> None:
    units = {"GiB": 2**30, "MiB": 2**20}
    for up in (True, False):
        number, unit = gibibytes(count, up=up).split()
        told = float(number) * units[unit]
        assert (told >= count - 1e-6) if up else (told <= count + 1e-6)
        assert abs(told - count) <= (0.1 * 2**30 if unit == "GiB" else 2**20)


def test_the_engine_is_started_on_the_data_directory(tmp_path: Path) -> None:
    command = engine_command(tmp_path, "--threads", "2")
    assert command[1:] == ("-m", "engine", "--data-directory", str(tmp_path), "--threads", "2")


def test_only_listed_variables_reach_the_engine() -> None:
    own = {
        "PATH": "/bin", "HF_TOKEN": "s", "AWS_SECRET_ACCESS_KEY": "s", "https_proxy": "s",
        "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "0", "PYTHONPATH": "/evil", "SystemRoot": "C:",
    }  # fmt: skip
    passed = engine_environment(own)
    assert set(passed) == {
        "PATH", "LC_ALL", "CUDA_VISIBLE_DEVICES", "SystemRoot", "PYTHONUTF8", "PYTHONNOUSERSITE",
    }  # fmt: skip
