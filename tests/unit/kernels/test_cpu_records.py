"""The records as ctypes sees them lie in memory as the C compiler laid them out."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernels.cpu import library, records
from kernels.cpu.library import Library, LibraryUnavailable, Pool
from kernels.cpu.records import Isa

RECORDS = (
    records.Activations,
    records.Weight,
    records.Embed,
    records.Residual,
    records.Combine,
    records.PerLayer,
    records.Cap,
    records.Product,
    records.Angles,
    records.LayerKv,
    records.Rotate,
    records.Attend,
    records.Chunk,
    records.Gate,
    records.Delta,
    records.Route,
    records.Experts,
    records.Operation,
    records.Rows,
)


def compiled() -> Iterator[list[int]]:
    """Each record's size and field offsets, in the header's order."""
    folder = Path(library.__file__).parent
    name = {"linux": "hearth_cpu-linux-x86_64.so", "win32": "hearth_cpu-windows-x86_64.dll"}
    exported = ctypes.CDLL(str(folder / name[sys.platform])).hearth_record_layout
    exported.restype = ctypes.POINTER(ctypes.c_int64)
    numbers = exported()
    at = 0
    while numbers[at] >= 0:
        found = []
        while numbers[at] >= 0:
            found.append(numbers[at])
            at += 1
        yield found
        at += 1


def test_every_record_has_the_size_and_offsets_of_the_c_structure() -> None:
    ours = [
        [ctypes.sizeof(kind), *(getattr(kind, field[0]).offset for field in kind._fields_)]
        for kind in RECORDS
    ]
    assert ours == list(compiled())


def test_no_record_is_forgotten_here() -> None:
    kinds = [
        kind
        for kind in vars(records).values()
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure)
    ]
    assert kinds == list(RECORDS)


def test_a_missing_library_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(LibraryUnavailable, match="could not be loaded"):
        Library(tmp_path / "absent.so")


def test_a_system_without_a_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "plan9")
    with pytest.raises(LibraryUnavailable, match="plan9"):
        Library()


@pytest.mark.parametrize("threads", [0, -1])
def test_a_pool_without_threads_is_refused(threads: int) -> None:
    with pytest.raises(LibraryUnavailable, match="could not be started"):
        Pool(Library(), threads)


def test_an_instruction_set_beyond_the_processor_is_refused() -> None:
    class Beyond:
        name = "BEYOND"

        def __int__(self) -> int:
            return int(Library().best_isa()) + 1

    with pytest.raises(LibraryUnavailable, match="BEYOND"):
        Pool(Library(), 1, Beyond())  # type: ignore[arg-type]


def test_a_pool_closes_twice_and_is_then_refused_work() -> None:
    pool = Pool(Library(), 2, Isa.AVX2)
    pool.close()
    pool.close()
    with pytest.raises(AssertionError, match="closed"):
        pool.prepare(records.Activations(), 0, 0)
