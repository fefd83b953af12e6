"""A kernel folder is complete: reference, kernel, launch and cases."""

from __future__ import annotations

from pathlib import Path

from tests.structure.sources import tracked

PARTS = {"__init__.py", "reference.py", "kernel.py", "launch.py", "cases.py"}
NO_OPERATION = {"quant", "cpu", "packed"}


def operations(files: tuple[Path, ...]) -> dict[str, set[str]]:
    """Operation -> the names of its files."""
    found: dict[str, set[str]] = {}
    for path in files:
        in_folder = len(path.parts) == 3 and path.parts[0] == "kernels"
        if in_folder and path.parts[1] not in NO_OPERATION:
            found.setdefault(path.parts[1], set()).add(path.name)
    return found


def test_every_operation_has_all_its_parts() -> None:
    lacking = {name: PARTS - files for name, files in operations(tracked()).items()}
    assert {name: parts for name, parts in lacking.items() if parts} == {}


def test_the_search_sees_an_operation_that_lacks_a_part() -> None:
    files = (Path("kernels/norm/kernel.py"), Path("kernels/quant/q4_k.py"))
    assert operations(files) == {"norm": {"kernel.py"}}


def test_only_the_cpu_library_is_kept_as_a_binary_file() -> None:
    binary = [path for path in tracked() if path.suffix in (".so", ".dll", ".pyd", ".exe", ".a")]
    assert [path for path in binary if path.parts[:2] != ("kernels", "cpu")] == []
