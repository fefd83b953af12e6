"""The backend picks the native library where it can, says why where it cannot, and frees it all."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.backend import WEIGHTS, WORKSPACE, build_runner
from engine.cache.formats import KvFormat
from engine.cache.kv import KvArena
from engine.checkpoint.source import CheckpointSource
from engine.config import Compute, EngineConfig
from engine.errors import MemoryRefused
from engine.forward import TorchRunner
from engine.memory.envelope import Demand
from engine.memory.ledger import Ledger
from engine.memory.pools import RAM
from engine.models import model_spec
from engine.native import NativeRunner, StoredWeights
from engine.runner import Runner, RunnerParts
from kernels.cpu.library import Library, LibraryUnavailable
from tests.helpers.memory_source import tiny_source
from tests.helpers.stored_source import wide_source


@pytest.fixture
def resources() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def parts(
    source: CheckpointSource,
    stack: ExitStack,
    *,
    compute: Compute = Compute.AUTO,
    ram_bytes: int = 1 << 30,
    done: list[tuple[int, int]] | None = None,
) -> RunnerParts:
    spec, ledger = model_spec(source), Ledger({RAM: ram_bytes})
    pages = [2] * len(spec.groups)
    kv = stack.enter_context(KvArena(spec.groups, pages, KvFormat.FP16, ledger, RAM))
    told = [] if done is None else done
    return RunnerParts(
        spec=spec,
        source=source,
        kv=kv,
        config=EngineConfig(Path("unused"), compute, threads=1),
        recurrent=None,
        context_tokens=512,
        streams=2,
        ledger=ledger,
        progress=lambda *share: told.append(share),
        resources=stack,
    )


def ledger_of(made: RunnerParts) -> Ledger:
    assert isinstance(made.ledger, Ledger)
    return made.ledger


def holders(made: RunnerParts) -> dict[str, int]:
    (pool,) = ledger_of(made).census()
    return dict(pool.holders)


def test_a_model_of_fit_widths_runs_natively(resources: ExitStack) -> None:
    made = parts(wide_source(formats={"ffn_up": "q4_1"}), resources)
    runner = build_runner(made)
    assert isinstance(runner, NativeRunner)
    assert runner.shares_steps
    assert torch.get_num_threads() == 1
    assert {WEIGHTS, WORKSPACE} < holders(made).keys()


def test_what_is_kept_as_float32_is_said_with_its_bytes(
    resources: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    wide: dict[str, Any] = {"embedding_length": 256, "feed_forward_length": 256}
    wide |= {"attention__head_count": 8, "attention__key_length": 32}
    build_runner(parts(wide_source(formats={"ffn_up": "q4_1"}, **wide), resources))
    assert "float32" not in caplog.text, "the control"
    build_runner(parts(wide_source(formats={"ffn_gate": "iq2_xxs"}, **wide), resources))
    assert f"weights kept as float32 bytes={2 * 256 * 256 * 4}" in caplog.text


def test_closing_the_resources_leaves_nothing_in_the_ledger() -> None:
    with ExitStack() as stack:
        made = parts(wide_source(formats={"attn_q": "q8_0"}), stack)
        build_runner(made)
        assert holders(made)
    assert holders(made) == {}


def test_progress_rises_to_the_whole(resources: ExitStack) -> None:
    done: list[tuple[int, int]] = []
    made = parts(wide_source(formats={"ffn": "q4_0"}), resources, done=done)
    build_runner(made)
    assert done == sorted(done)
    assert done[-1][0] == done[-1][1] > 0


def test_float32_is_torch_and_no_warning(resources: ExitStack) -> None:
    assert is_torch(build_runner(parts(wide_source(), resources, compute=Compute.FLOAT32)))


def test_odd_widths_run_in_torch_and_the_log_says_why(
    resources: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    assert is_torch(build_runner(parts(tiny_source(), resources)))
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "width of 24 is no multiple of 32" in record.getMessage()


def test_a_processor_without_the_library_runs_in_torch_and_the_log_says_why(
    resources: ExitStack, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: Library) -> None:
        raise LibraryUnavailable("This processor has no AVX2, FMA and F16C.")

    monkeypatch.setattr(Library, "__init__", missing)
    assert is_torch(build_runner(parts(wide_source(), resources)))
    assert "no AVX2" in caplog.text


@pytest.mark.parametrize("compute", Compute)
def test_too_little_memory_is_refused_before_anything_is_made(compute: Compute) -> None:
    with ExitStack() as stack:
        source = wide_source(formats={"ffn_up": "q4_1"})
        made = parts(source, stack, compute=compute)
        full = ledger_of(made).reserve(
            "someone", {RAM: (1 << 30) - sum(holders(made).values()) - 9}
        )
        with pytest.raises(MemoryRefused):
            build_runner(made)
        full.close()
    assert holders(made) == {}


def test_weights_that_cannot_be_freed_stay_charged_until_a_retry(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, failures = StoredWeights.close, [BufferError("exported pointers exist")]

    def close(weights: StoredWeights) -> None:
        if failures:
            raise failures.pop()
        really(weights)

    monkeypatch.setattr(StoredWeights, "close", close)
    with caplog.at_level(logging.ERROR), pytest.raises(BufferError), ExitStack() as stack:
        made = parts(wide_source(formats={"attn_q": "q8_0"}), stack)
        build_runner(made)
        size = holders(made)[WEIGHTS]
    assert holders(made) == {f"quarantined {WEIGHTS}": size}
    assert ledger_of(made).retry_quarantined() == ()
    assert holders(made) == {}


def test_a_runner_draws_from_an_envelope_without_counting_twice() -> None:
    with ExitStack() as stack:
        made = parts(wide_source(formats={"attn_q": "q8_0"}), stack)
        ledger = ledger_of(made)
        with ledger.envelope("loading", Demand({RAM: 1 << 29})) as room:
            before = ledger.pool(RAM).held_bytes
            build_runner(replace(made, ledger=room))
            assert ledger.pool(RAM).held_bytes == before
            assert set(holders(made)) >= {WEIGHTS, WORKSPACE, "loading"}
        assert "loading" not in holders(made)
        assert ledger.pool(RAM).held_bytes < before
    assert holders(made) == {}


def is_torch(runner: Runner) -> bool:
    return isinstance(runner, TorchRunner) and not runner.shares_steps
