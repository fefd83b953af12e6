"""Every package is pinned and hashed, and CUDA stays where it belongs."""

from __future__ import annotations

import re

import pytest

from installer import locked
from installer.places import places

LOCK = places().lock
FILES = sorted(path.name for path in LOCK.glob("*.txt"))
REQUIREMENT = re.compile(
    r"[a-z0-9-]+==[A-Za-z0-9.+]+(?: ; [^\\\n]+?)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
)


@pytest.mark.parametrize("name", FILES)
def test_every_line_is_a_pin_with_hashes(name: str) -> None:
    text = "".join(
        line for line in (LOCK / name).read_text("utf-8").splitlines(True) if line[0] != "#"
    )
    assert REQUIREMENT.sub("", text) == ""
    assert locked.requirements(text)


def test_the_pins_are_those_that_the_design_fixed() -> None:
    run = locked.requirements((LOCK / "run.txt").read_text("utf-8"))
    cuda = locked.requirements((LOCK / "torch-cuda.txt").read_text("utf-8"))
    assert run["pyside6-essentials"] == "6.11.2"
    assert cuda["torch"] == "2.13.0"
    assert cuda["triton"] == "3.7.1"
    assert cuda["triton-windows"] == "3.7.1.post27"


def test_without_a_gpu_nothing_of_cuda_is_installed() -> None:
    for windows in (False, True):
        for part in locked.parts("cpu", tests=False, windows=windows):
            names = locked.requirements((LOCK / part.name).read_text("utf-8"))
            assert not [n for n in names if n.startswith(("nvidia", "cuda", "triton"))]


def test_the_tests_take_the_compiler_of_kernels_alone_and_on_linux_alone() -> None:
    text = (LOCK / "test.txt").read_text("utf-8")
    names = locked.requirements(text)
    assert [n for n in names if n.startswith(("nvidia", "cuda", "triton"))] == ["triton"]
    cuda = locked.requirements((LOCK / "torch-cuda.txt").read_text("utf-8"))
    assert names["triton"] == cuda["triton"]
    assert re.search(r"^triton==\S+ ; [^\n]*sys_platform == 'linux'", text, re.MULTILINE)


def test_linux_takes_the_cpu_build_by_its_own_version() -> None:
    text = (LOCK / "torch-cpu.txt").read_text("utf-8")
    assert "torch==2.13.0+cpu ; sys_platform == 'linux'" in text
    assert "torch==2.13.0 ; sys_platform == 'win32'" in text


def test_no_set_pins_what_another_pins_differently() -> None:
    run = locked.requirements((LOCK / "run.txt").read_text("utf-8"))
    test = locked.requirements((LOCK / "test.txt").read_text("utf-8"))
    assert set(run).isdisjoint(test)


def test_the_tests_come_last_and_only_when_asked_for() -> None:
    names = [part.name for part in locked.parts("cpu", tests=True, windows=False)]
    assert names == ["torch-cpu.txt", "run.txt", "test.txt"]
    assert "test.txt" not in [p.name for p in locked.parts("cuda", tests=False, windows=False)]


def test_only_linux_without_a_gpu_has_a_spare_source_and_only_for_torch() -> None:
    spare = {
        (backend, windows, part.name)
        for backend in ("cpu", "cuda")
        for windows in (False, True)
        for part in locked.parts(backend, tests=True, windows=windows)
        if part.spare_index
    }
    assert spare == {("cpu", False, "torch-cpu.txt")}


def test_the_builds_of_torch_are_told_apart_by_system() -> None:
    assert "cp311" in locked.torch_builds(LOCK, "cpu", windows=False)
    assert {"cp311", "cp312", "cp313"} <= set(locked.torch_builds(LOCK, "cpu", windows=True))
    assert {"cp311", "cp312", "cp313"} <= set(locked.torch_builds(LOCK, "cuda", windows=False))
    assert locked.torch_builds(LOCK, "cuda", windows=True) == ()
