"""The GPU benchmarks' own arithmetic: whose time it is, what a token must read, what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.checkpoint.open import open_checkpoint
from engine.models import model_spec
from tests.bench.gpu import profile
from tests.bench.gpu.child import Finding
from tests.bench.gpu.report import Report
from tests.helpers import random_checkpoint
from tests.helpers.random_checkpoint import Geometry, write_random

DENSE = Geometry(4, 256, 512, 1, 1, 1, 2, tied=False, vocabulary=512)
EXPERTS = Geometry(4, 256, 256, 1, 1, 1, 2, tied=False, experts=4, used=2, vocabulary=512)


def test_a_kernel_that_waits_for_the_one_before_is_charged_what_passes_after_it() -> None:
    """a runs 0 to 10; b starts at 2 and ends at 13: 3 are its own; c overlaps nothing."""
    rows = profile.own_times([("a", 0.0, 10.0), ("b", 2.0, 13.0), ("c", 20.0, 21.0)])
    own = {row.name: row.microseconds * profile.REPEATS for row in rows}
    assert own == pytest.approx({"a": 10.0, "b": 3.0, "c": 1.0})
    assert [row.name for row in rows] == ["a", "b", "c"]


@pytest.mark.parametrize("geometry", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_a_random_checkpoint_is_one_that_the_engine_reads(
    geometry: Geometry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(random_checkpoint.GEOMETRIES, "tiny", geometry)
    monkeypatch.setattr(random_checkpoint, "POOL_BYTES", 1 << 16)
    path = tmp_path / "random.gguf"
    write_random(path, "tiny", "q4_k_m", vocabulary=None)
    with open_checkpoint(path) as source:
        spec = model_spec(source)
        assert len(spec.layers) == geometry.layers
        formats = {name: tensor.format for name, tensor in source.tensors.items()}
        rows = [source.tensors["output.weight"].offset, path.stat().st_size]
    assert formats["output.weight"] == "q6_k"
    assert formats["token_embd.weight"] == "q4_k"
    assert rows[0] < rows[1]


def test_findings_are_kept_as_they_come_and_failures_come_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.txt"
    report = Report(out)
    report.add(Finding("card", "", "", figures={"copy_bytes_s": 4e12, "bf16_flops_s": 8e14}))
    report.add(Finding("warm", "bench_a", "one"))
    report.add(Finding("check", "a", "case", "AssertionError: other numbers"))
    figures = {"median_us": 2.0, "lowest_us": 1.0, "highest_us": 3.0, "how": "graph of 8"}
    report.add(Finding("time", "bench_a", "one", figures=figures | {"bytes": 4e6, "flops": 0}))
    assert report.warmed("bench_a") == ["one"]
    assert report.finish() == 1
    lines = capsys.readouterr().out.splitlines()
    assert "2 TB/s 50 %" in lines[2]
    assert lines[-2].startswith("FAILED check a case")
    kept = out.read_text().splitlines()
    assert kept[: len(lines)] == lines
    assert kept[-1].startswith('{"bench": "kernels"')
