"""GPUs are read from the driver; none, a broken driver or an odd answer never invents memory."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from engine.memory.gpus import read_gpus
from engine.memory.pools import MEBIBYTE, PoolReading, capacity_bytes
from tests.helpers.fake_nvml import FakeGpu, FakeNvml

GIBIBYTE = 1024 * MEBIBYTE
BIG = FakeGpu("NVIDIA H200", 141 * GIBIBYTE, 100 * GIBIBYTE, own_bytes=GIBIBYTE)
SMALL = FakeGpu("NVIDIA GeForce RTX 3060", 12 * GIBIBYTE, 11 * GIBIBYTE)


def test_every_gpu_is_a_pool_in_the_driver_s_order_with_what_others_hold() -> None:
    nvml = FakeNvml([BIG, SMALL])
    assert read_gpus(lambda: nvml) == (
        PoolReading("gpu0", 141 * GIBIBYTE, 100 * GIBIBYTE, 40 * GIBIBYTE, "NVIDIA H200"),
        PoolReading("gpu1", 12 * GIBIBYTE, 11 * GIBIBYTE, GIBIBYTE, "NVIDIA GeForce RTX 3060"),
    )
    assert nvml.open == 0


def test_without_the_library_there_is_no_gpu() -> None:
    def missing() -> Any:
        raise ImportError("no pynvml")

    assert read_gpus(missing) == ()


def test_this_machine_answers_or_has_none() -> None:
    assert all(gpu.total_bytes >= gpu.free_bytes >= 0 for gpu in read_gpus())


def test_without_a_driver_there_is_no_gpu_and_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    nvml = FakeNvml([BIG], fails="init")
    with caplog.at_level(logging.DEBUG):
        assert read_gpus(lambda: nvml) == ()
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert nvml.asked == ["init"]


def test_gpus_that_cannot_be_counted_are_none(caplog: pytest.LogCaptureFixture) -> None:
    nvml = FakeNvml([BIG], fails="count")
    with caplog.at_level(logging.WARNING):
        assert read_gpus(lambda: nvml) == ()
    assert "count failed" in caplog.text
    assert nvml.open == 0


@pytest.mark.parametrize("fails", ["handle", "name", "memory"])
def test_a_gpu_that_does_not_answer_has_no_room_and_the_others_are_read(
    fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    nvml = FakeNvml([FakeGpu("mute", 9 * GIBIBYTE, 9 * GIBIBYTE, fails=fails), SMALL])
    with caplog.at_level(logging.WARNING):
        mute, other = read_gpus(lambda: nvml)
    assert (mute.name, mute.total_bytes, capacity_bytes(mute)) == ("gpu0", 0, 0)
    assert (other.name, other.label) == ("gpu1", SMALL.name)
    assert f"pool=gpu0 reason={fails} failed" in caplog.text


@pytest.mark.parametrize(("total", "free"), [(5, 6), (5, -1)])
def test_an_answer_that_cannot_be_leaves_no_room(
    total: int, free: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        (gpu,) = read_gpus(lambda: FakeNvml([FakeGpu("odd", total, free)]))
    assert (gpu.total_bytes, gpu.free_bytes) == (0, 0)


@pytest.mark.parametrize("gpu", [FakeGpu("a", 10, 4, None), FakeGpu("a", 10, 4, 3, "running")])
def test_where_the_driver_does_not_say_what_is_ours_all_that_is_used_is_others(
    gpu: FakeGpu,
) -> None:
    (found,) = read_gpus(lambda: FakeNvml([gpu]))
    assert found.others_bytes == 6


def test_a_library_that_cannot_be_closed_changes_no_answer() -> None:
    (found,) = read_gpus(lambda: FakeNvml([SMALL], fails="shutdown"))
    assert found.total_bytes == SMALL.total_bytes
