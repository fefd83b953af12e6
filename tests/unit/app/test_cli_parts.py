"""Parts of the command line without a process: options, output, rates, the doctor's redaction."""

from __future__ import annotations

import io
import math
from pathlib import Path

import msgspec
import pytest

from app.cli.ask import per_second
from app.cli.looking.bench import Speed, computes_on_gpu, speed
from app.cli.looking.peer import Peer, PeerFailed, PeerTask, find_peer
from app.cli.main import main
from app.cli.options import AskOptions, BenchOptions, WindowOptions, parse
from app.cli.output import Output, OutputClosed, OutputFailed, visible
from app.directories import Directories
from app.errors import InputInvalid
from app.link.process import EngineCommand
from app.machine.facts import Disk, Machine, disk, display, processor
from app.machine.report import (
    DoctorReport,
    EngineReport,
    StatesFolder,
    lines,
    redacted,
    states_folder,
)
from engine.protocol import Loaded, ModelFacts, PlanLine


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: PROMPT"),
        (["--bogus", "x"], "--bogus"),
        (["--temperature", "nan", "x"], "not a number from 0 up"),
        (["--temperature", "inf", "x"], "not a number from 0 up"),
        (["--temperature", "-1", "x"], "temperature"),
        (["--temperature", "warm", "x"], "not a number from 0 up"),
        (["--max-tokens", "-3", "x"], "max-tokens"),
        (["--seed", "1.5", "x"], "whole number"),
        (["--chat"], "expected one argument"),
        (["--chat", " ", "x"], "name of a conversation"),
        (["--raw", "--system", "s", "x"], "--system"),
        (["--raw", "--chat", "c", "x"], "--chat"),
        (["--data-directory", "", "x"], "no folder"),
    ],
)
def test_arguments_that_make_no_sense_are_one_sentence(arguments: list[str], words: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        parse(["ask", *arguments])
    assert words in caught.value.sentence
    assert "\n" not in caught.value.sentence
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("arguments", [["bogus"], ["bench", "--runs", "0"], ["models", "--x"]])
def test_other_commands_refuse_in_one_sentence_too(arguments: list[str]) -> None:
    with pytest.raises(InputInvalid):
        parse(arguments)


def test_options_are_read_into_records() -> None:
    numbers = ["--temperature", "1e-38", "--seed", "9", "--max-tokens", "0"]
    found = parse(["ask", *numbers, "hi \udcff"])
    assert isinstance(found, AskOptions)
    assert (found.temperature, found.seed, found.max_tokens) == (1e-38, 9, 0)
    assert found.prompt == "hi \ufffd"
    assert parse(["--data-directory", "/d"]) == WindowOptions(Path("/d"))
    for place in (["--data-directory", "/d", "bench"], ["bench", "--data-directory", "/d"]):
        bench = parse(place)
        assert isinstance(bench, BenchOptions)
        assert bench.data_directory == Path("/d")


def test_no_command_opens_the_window_on_the_profile(tmp_path: Path) -> None:
    opened: list[Directories] = []

    def window(places: Directories, make_command: object) -> int:
        opened.append(places)
        assert callable(make_command)
        return 5

    def command(_folder: Path) -> EngineCommand:
        return ("engine",)

    code = main(["--data-directory", str(tmp_path)], make_command=command, open_window=window)
    assert code == 5
    assert opened[0].data == tmp_path


def test_a_start_without_a_console_opens_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    assert main([], open_window=lambda _places, _command: 5) == 5
    assert main(["--bogus"], open_window=lambda _places, _command: 5) == 2


class Terminal(io.BytesIO):
    """A stdout that may be closed or full."""

    def __init__(self, error: OSError | None = None) -> None:
        super().__init__()
        self.error = error

    def write(self, content: object, /) -> int:
        if self.error is not None:
            raise self.error
        assert isinstance(content, bytes)
        return super().write(content)


def test_a_terminal_gets_controls_shown_and_a_line_end_once() -> None:
    stream = Terminal()
    output = Output(stream, is_terminal=True)
    output.text("a\x1b[2J\tb\r\x9b")
    output.end_text()
    output.end_text()
    assert stream.getvalue().decode() == "a\ufffd[2J\tb\ufffd\ufffd\n"


def test_a_file_gets_the_bytes() -> None:
    stream = Terminal()
    output = Output(stream, is_terminal=False)
    output.text("a\x1b[2J")
    output.end_text()
    assert stream.getvalue() == b"a\x1b[2J"


def test_a_closed_and_a_full_stdout_are_told_apart() -> None:
    with pytest.raises(OutputClosed):
        Output(Terminal(BrokenPipeError()), is_terminal=False).text("x")
    with pytest.raises(OutputFailed, match="No space"):
        Output(Terminal(OSError(28, "No space left")), is_terminal=False).text("x")


def test_visible_text_keeps_what_is_printed() -> None:
    assert visible("Grüße 你好 \N{GRINNING FACE}\n\t") == "Grüße 你好 \N{GRINNING FACE}\n\t"
    assert visible("\x00\x07\x7f\x85") == "\ufffd" * 4


@pytest.mark.parametrize(
    ("count", "milliseconds"), [(5, None), (5, 0.0), (0, 10.0), (-1, 10.0), (5, math.nan)]
)
def test_a_rate_of_nothing_is_nothing(count: int, milliseconds: float | None) -> None:
    assert per_second(count, milliseconds) is None


def test_a_rate_is_tokens_a_second() -> None:
    assert per_second(50, 250.0) == 200.0
    assert per_second(10**9, 5e-324) is None


def test_speeds_are_medians_with_their_range() -> None:
    assert speed([3.0, 1.0, 9.0]) == Speed(median=3.0, lowest=1.0, highest=9.0)
    assert speed([]) == Speed(median=None, lowest=None, highest=None)


# The peer ----------------------------------------------------------------------------------------


def fake_peer(folder: Path, text: str) -> Peer:
    program = folder / "llama-bench"
    program.write_text(f'#!/bin/sh\necho "$@" > {folder}/seen\n{text}\n')
    program.chmod(0o755)
    return Peer(program)


def test_the_peers_figures_are_read(tmp_path: Path) -> None:
    peer = fake_peer(tmp_path, """echo '[{"n_prompt": 512, "n_gen": 0, "avg_ts": 12.5, "x": 1}]'""")
    task = PeerTask(Path("/m.gguf"), 2, on_gpu=False)
    assert peer.prefill_tok_s(task, 512) == 12.5
    asked = (tmp_path / "seen").read_text().strip()
    assert asked == "-m /m.gguf -t 2 -ngl 0 -r 1 -o json -p 512 -n 0"
    assert peer.decode_tok_s(task, 128, 512) == 12.5


def test_the_peer_computes_where_hearth_does(tmp_path: Path) -> None:
    peer = fake_peer(tmp_path, """echo '[{"n_prompt": 512, "n_gen": 0, "avg_ts": 12.5}]'""")
    peer.prefill_tok_s(PeerTask(Path("/m.gguf"), 2, on_gpu=True), 512)
    assert "-ngl 99 -fa 1" in (tmp_path / "seen").read_text()
    facts = ModelFacts(
        name="m", path="/m.gguf", architecture="llama", context_tokens=1, vocabulary=1,
        file_bytes=1, format="q4_k", has_template=False, template_hash="",
    )  # fmt: skip
    plans = {
        pool: (PlanLine(pool=pool, owner="weights", bytes=size, reason="all"),)
        for pool, size in (("gpu0", 5), ("gpu1", 0), ("ram", 5))
    }
    on_gpu = {
        pool: computes_on_gpu(Loaded(request=1, model=facts, load_ms=1.0, plan=plan))
        for pool, plan in plans.items()
    }
    assert on_gpu == {"gpu0": True, "gpu1": False, "ram": False}


@pytest.mark.parametrize("text", ["echo nonsense", "echo '[]'", "exit 3"])
def test_a_peer_without_figures_is_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(PeerFailed, match="gave no figures"):
        fake_peer(tmp_path, text).prefill_tok_s(PeerTask(Path("/m"), 2, on_gpu=False), 512)


def test_a_peer_is_found_on_the_path_or_by_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_peer(None) is None
    for wanted in ("llama.cpp", "/no/such"):
        with pytest.raises(InputInvalid):
            find_peer(wanted)
    made = fake_peer(tmp_path, "true")
    assert find_peer(None) == find_peer("llama.cpp") == find_peer(str(made.program)) == made


# The doctor --------------------------------------------------------------------------------------


def doctor_report(folder: str) -> DoctorReport:
    machine = Machine(
        system="Linux", python=f"3.11 ({folder}/venv/bin/python)", packages={"torch": None},
        cpu="a CPU", cpu_flags=("avx2",), logical_cores=4, physical_cores=2, ram_bytes=2**34,
        ram_free_bytes=2**33, gpus=(), gpu_note="No NVIDIA GPU was found.", keyring="none",
        display="none", disks=(Disk(folder=folder, free_bytes=1, total_bytes=2, writable=True),),
    )  # fmt: skip
    return DoctorReport(
        hearth="0.1.0", machine=machine, engine=EngineReport(problem=f"No {folder}/x, said ana."),
        data_directory=f"{folder}/data",
        states=StatesFolder(folder=f"{folder}/states", disk_bytes=590_000_000, quota_bytes=None),
        in_use_by=None, models=("banana",), notices=(),
    )  # fmt: skip


def test_a_report_names_neither_the_person_nor_their_home() -> None:
    shown = redacted(doctor_report("/home/ana"), home=Path("/home/ana"), user="ana")
    text = "\n".join(lines(shown))
    assert "/home" not in text
    assert "ana" not in text.replace("banana", "")
    assert "banana" in text, "only whole words are a name"
    assert "~/venv/bin/python" in text
    assert shown.data_directory == "~/data"


def test_a_person_may_be_called_like_a_field() -> None:
    shown = redacted(doctor_report("/home/hearth"), home=Path("/home/hearth"), user="hearth")
    assert shown.data_directory == "~/data"
    assert shown.hearth == "0.1.0"


def test_a_report_says_plainly_what_is_missing() -> None:
    text = "\n".join(lines(doctor_report("/d")))
    assert "No NVIDIA GPU was found." in text
    assert "no torch" in text


def test_the_doctor_tells_what_kept_states_take(tmp_path: Path) -> None:
    inner = tmp_path / "states" / "identity"
    inner.mkdir(parents=True)
    (inner / "one").write_bytes(bytes(1000))
    (tmp_path / "states" / "two").write_bytes(bytes(24))
    found = states_folder(tmp_path / "states", 2_000_000_000)
    assert (found.disk_bytes, found.quota_bytes) == (1024, 2_000_000_000)
    assert states_folder(tmp_path / "none", None).disk_bytes == 0
    report = doctor_report("/d")
    for quota, words in (
        (None, "590 MB, at most 20 GB or a tenth of the free disk"),
        (2_000_000_000, "590 MB, at most 2.0 GB"),
        (0, "590 MB, and nothing more by the settings"),
    ):
        kept = msgspec.structs.replace(report.states, quota_bytes=quota)
        text = "\n".join(lines(msgspec.structs.replace(report, states=kept)))
        assert f"/d/states: {words}" in text


def test_the_cpus_flags_are_read_where_the_system_tells_them(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor : 0\nmodel name : Some CPU\nflags : fpu avx2 amx_int8 sse\n")
    assert processor(file) == ("Some CPU", ("avx2", "amx_int8"))
    assert processor(tmp_path / "missing")[1] is None


def test_the_display_is_named() -> None:
    assert display({}, "linux").startswith("none")
    assert display({"DISPLAY": ":1"}, "linux") == "X11 (:1)"
    assert display({"WAYLAND_DISPLAY": "w", "DISPLAY": ":1"}, "linux") == "Wayland (w)"
    assert display({}, "win32") == "the system's own"


def test_a_disk_is_asked_where_the_folder_would_be(tmp_path: Path) -> None:
    found = disk(tmp_path / "not" / "yet")
    assert found.writable
    assert found.free_bytes is not None
