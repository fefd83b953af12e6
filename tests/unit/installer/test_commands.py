"""The two commands read their own arguments, pass the rest on, and refuse a wrong Python."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from installer.commands import main, parse
from installer.places import ROOT
from installer.problems import SetupProblem
from installer.report import Report
from installer.system.alone import alone

BOOTSTRAP = ROOT / "installer" / "bootstrap.py"


def test_what_follows_the_dashes_is_passed_on_untouched() -> None:
    wish, rest = parse(["run", "--torch", "cpu", "--", "ask", "--torch", "--", "hi"])
    assert (wish.command, wish.torch) == ("run", "cpu")
    assert rest == ["ask", "--torch", "--", "hi"]


@pytest.mark.parametrize("arguments", [[], ["walk"], ["run", "--torch", "rocm"], ["run", "ask"]])
def test_what_makes_no_sense_ends_with_code_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "bootstrap.py" in capsys.readouterr().err


@pytest.mark.parametrize("version", [(3, 10, 14), (3, 7, 0)])
def test_an_old_python_is_told_in_one_sentence(version: tuple[int, ...]) -> None:
    pretend = (
        f"import sys, runpy; sys.version_info = {version}; "
        f"runpy.run_path({str(BOOTSTRAP)!r}, run_name='__main__')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", pretend], capture_output=True, text=True, check=False
    )
    found = ".".join(map(str, version))
    assert ended.returncode == 1
    assert ended.stderr == f"hearth: Python 3.11 or newer is needed, found {found}.\n"


def test_old_pythons_can_read_the_file_that_tells_them() -> None:
    assert ast.parse(BOOTSTRAP.read_text("utf-8"), feature_version=(3, 7))


def test_set_up_needs_nothing_but_the_standard_library() -> None:
    probe = "import installer.commands, sys; print(*sorted(sys.modules))"
    ended = subprocess.run(
        [sys.executable, "-S", "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in ended.stdout.split()}
    assert loaded - sys.stdlib_module_names - {"__main__", "installer"} == set()


def test_a_second_set_up_of_the_same_checkout_waits_and_is_refused_in_the_end(
    tmp_path: Path,
) -> None:
    told = io.StringIO()
    refused = pytest.raises(SetupProblem, match="by another process")
    with alone(tmp_path, Report(told)), refused, alone(tmp_path, Report(told), wait_s=0.3):
        pass
    assert told.getvalue() == f"Waiting for another set-up of {tmp_path} to end.\n"
    with alone(tmp_path, Report(told), wait_s=0.0):
        assert tmp_path.is_dir()


def test_a_child_that_outlives_a_killed_set_up_still_holds_the_checkout(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from installer.system.alone import alone\n"
        "from installer.report import Report\n"
        "from installer.system.children import run\n"
        "with alone(Path(sys.argv[1]), Report()):\n"
        "    run([sys.executable, '-c', 'import time; print(1, flush=True); time.sleep(60)'],\n"
        "        lambda line: print(line, flush=True))\n"
    )
    set_up = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert set_up.stdout is not None
    assert set_up.stdout.readline() == b"1\n"
    (child,) = psutil.Process(set_up.pid).children()
    set_up.kill()
    set_up.communicate()
    refused = pytest.raises(SetupProblem, match="by another process")
    with refused, alone(tmp_path, Report(io.StringIO()), wait_s=0.0):
        pass
    child.kill()
    with alone(tmp_path, Report(io.StringIO()), wait_s=5.0):
        assert tmp_path.is_dir()
