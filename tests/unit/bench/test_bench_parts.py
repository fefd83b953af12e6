"""The benchmarks' own arithmetic: distances, saved logits, coded inputs, the peer's report."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.forward import DequantizedProducts, Weights
from engine.models import model_spec
from engine.models.spec import Linear
from kernels.cpu import reference
from tests.bench.__main__ import main, names
from tests.bench._facts import Spread
from tests.bench._peer import SavedLogits, read_divergence
from tests.bench.quality import CodedProducts, Distance
from tests.helpers.stored_source import wide_source

REPORT = """
====== KL divergence statistics ======
Mean    KLD:   0.002713 ±   0.000154
Maximum KLD:   0.021034
99.9%   KLD:   0.020071
Same top p: 96.911 ± 1.081 %
"""


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def test_a_distance_worked_by_hand() -> None:
    """p = (3/4, 1/4), q = (1/2, 1/2): 3/4 ln(3/2) + 1/4 ln(1/2)."""
    distance = Distance()
    wanted, found = torch.tensor([[math.log(3.0), 0.0]]), torch.tensor([[5.0, 5.0]])
    distance.add(found, wanted)
    figures = distance.figures(0, 1)
    assert figures["mean_nats"] == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert figures["relative_l2"] == pytest.approx(
        math.hypot(5 - math.log(3.0), 5.0) / math.log(3.0)
    )


def test_equal_logits_are_no_distance_apart_and_a_shift_costs_no_nats() -> None:
    wanted = normal(40, 11)
    same, shifted = Distance(), Distance()
    same.add(wanted, wanted)
    shifted.add(wanted + 3.0, wanted)
    assert same.figures(0, 40)["largest_nats"] == 0.0
    assert same.figures(0, 40)["top_percent"] == 100.0
    assert abs(shifted.figures(0, 40)["mean_nats"]) < 1e-12
    assert shifted.figures(0, 40)["relative_l2"] > 0.5


@pytest.mark.parametrize("vocabulary", [6, 7])
def test_saved_logits_are_the_second_half_within_half_a_step(
    tmp_path: Path, vocabulary: int
) -> None:
    logits, ids = 4 * normal(9, vocabulary), list(range(9))
    logits[5, 2] = logits[5].max() - 30.0
    with SavedLogits(tmp_path / "base", ids, vocabulary) as saved:
        saved.add(logits[:6])
        saved.add(logits[6:])
    raw = (tmp_path / "base").read_bytes()
    assert raw[:8] == b"_logits_"
    head = np.frombuffer(raw, "<i4", 3 + 9, offset=8).tolist()
    assert head == [9, vocabulary, 1, *ids]
    width = 2 * (2 * ((vocabulary + 1) // 2) + 4)
    body = raw[8 + 4 * 12 :]
    assert len(body) == 4 * width, "rows 4 to 7: not the first half, not the last"
    wanted = logits[4:8].double().log_softmax(-1)
    for row in range(4):
        part = body[row * width : (row + 1) * width]
        step, least = np.frombuffer(part, "<f4", 2).tolist()
        codes = torch.tensor(np.frombuffer(part, "<u2", vocabulary, offset=8).astype(np.int64))
        kept = wanted[row].clamp(min=wanted[row].max() - 16.0)
        assert (codes * step + least - kept).abs().max() < 0.51 * step + 2e-6


def test_the_peer_s_report_is_read() -> None:
    found = read_divergence(REPORT)
    assert (found.mean, found.error, found.largest) == (0.002713, 0.000154, 0.021034)
    assert found.top_percent == 96.911
    with pytest.raises(ValueError, match="did not print"):
        read_divergence("error: failed to load the model")


def test_coded_products_see_int16_inputs_where_a_native_step_does() -> None:
    source = wide_source(formats={"ffn_up": "q4_1"})
    exact = DequantizedProducts(model_spec(source), Weights(source))
    coded, x = CodedProducts(source, exact), normal(3, 96)
    rounded = reference.prepared(x).values().float()
    up, gate = (Linear(f"blk.0.ffn_{part}.weight") for part in ("up", "gate"))
    assert torch.equal(coded.multiply(x, up), exact.multiply(rounded, up))
    assert torch.equal(coded.multiply(x, gate), exact.multiply(x, gate)), "f32 takes values"
    assert not torch.equal(coded.multiply(x, up), exact.multiply(x, up)), "the control"


def test_a_spread_is_the_median_and_the_ends() -> None:
    assert Spread.of([3.0, 1.0, 10.0]) == Spread(3.0, 1.0, 10.0, 3)


def test_the_benchmarks_are_listed_and_an_unknown_one_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert {"quality", "speed", "step"} <= set(names())
    assert main(["nothing"]) == 2
    assert "quality" in capsys.readouterr().err
