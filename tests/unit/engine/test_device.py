"""The device is described from the system's own files, and threads respect every limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import Compute
from engine.device import device_facts, products_path
from kernels.cpu.library import Library, LibraryUnavailable

CPU = """processor\t: 0
model name\t: Some CPU 9000
flags\t\t: fpu sse avx2 fma avx512f avx512_bf16 unknown

processor\t: 1
model name\t: Another
flags\t\t: fpu
"""


def test_name_and_telling_flags_are_those_of_the_first_processor(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(CPU)
    facts = device_facts(3, tmp_path / "cpuinfo", tmp_path / "none")
    assert facts.name == "Some CPU 9000"
    assert facts.capabilities == ("avx2", "fma", "avx512f", "avx512-bf16")
    assert facts.threads == 3


def test_without_such_a_file_the_platform_is_named(tmp_path: Path) -> None:
    facts = device_facts(None, tmp_path / "none", tmp_path / "none")
    assert facts.name
    assert facts.capabilities == ()
    assert facts.threads >= 1


@pytest.mark.parametrize(
    ("text", "most"),
    [("100000 100000", 1), ("50000 100000", 1), ("max 100000", 4096), ("odd", 4096)],
)
def test_a_cgroup_s_quota_bounds_the_threads(tmp_path: Path, text: str, most: int) -> None:
    (tmp_path / "cpu.max").write_text(text)
    facts = device_facts(None, tmp_path / "none", tmp_path / "cpu.max")
    assert 1 <= facts.threads <= most


def test_what_computes_products_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable() -> Library:
        raise LibraryUnavailable("This processor has no AVX2, FMA and F16C.")

    assert products_path(Compute.FLOAT32) == "products in float32, as asked"
    assert products_path(Compute.AUTO).endswith(Library().best_isa().name)
    monkeypatch.setattr("engine.device.Library", unavailable)
    assert "torch in float32: This processor has no AVX2" in products_path(Compute.AUTO)
