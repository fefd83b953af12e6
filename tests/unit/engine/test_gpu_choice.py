"""A GPU computes where it can; where it cannot, a person hears why and the processor does."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from engine.cache.formats import KvFormat
from engine.config import Compute, Device, EngineConfig, parse_arguments
from engine.errors import DeviceLost
from engine.gpu.cards import driver
from engine.gpu.cards.choice import choose
from engine.gpu.cards.driver import device_of
from engine.gpu.cards.limits import LEAST_CAPABILITY, unsupported_by_gpu
from engine.loading.assembly import RunnerBuilder
from engine.loading.loader import CheckpointLoader, Measures
from engine.memory.gpus import GpuCard, read_cards
from engine.memory.ledger import Ledger
from engine.memory.pools import MEBIBYTE, RAM, PoolReading
from engine.models import model_spec
from engine.protocol import Load, Plan
from engine.runner import Runner, RunnerParts
from engine.states.identity import StateLayout, identity_of
from kernels.device import LEAST_CAPABILITY as KERNELS_NEED
from tests.helpers.fake_nvml import FakeGpu, FakeNvml
from tests.helpers.stored_source import wide_source
from tests.helpers.tiny_gguf import write_script

GIB = 1 << 30
CARD = GpuCard(
    PoolReading("gpu0", 24 * GIB, 23 * GIB, GIB, "NVIDIA Test"), (9, 0), "580.65", "GPU-1"
)
CONFIG = EngineConfig(Path("unused"), threads=1)


def test_the_first_card_computes_what_it_can() -> None:
    spec = model_spec(wide_source())
    assert choose(CONFIG, [CARD], spec).card is CARD
    assert choose(CONFIG, [CARD], spec).notes == ()


@pytest.mark.parametrize(
    "config", [replace(CONFIG, device=Device.CPU), replace(CONFIG, compute=Compute.FLOAT32)]
)
def test_who_asks_for_the_processor_gets_it_without_a_word(config: EngineConfig) -> None:
    found = choose(config, [CARD], model_spec(wide_source()))
    assert (found.card, found.notes) == (None, ())
    assert choose(CONFIG, [], model_spec(wide_source())).notes == ()


def test_an_old_card_is_named_with_both_numbers() -> None:
    found = choose(CONFIG, [replace(CARD, capability=(7, 5))], model_spec(wide_source()))
    assert found.card is None
    (note,) = found.notes
    assert "NVIDIA Test" in note and "7.5" in note and "8.0" in note
    assert LEAST_CAPABILITY == KERNELS_NEED


def test_a_model_that_no_kernel_takes_is_told() -> None:
    spec = model_spec(wide_source())
    assert unsupported_by_gpu(spec) is None
    assert "width of 40" in str(unsupported_by_gpu(replace(spec, hidden=40)))


def test_the_command_line_says_which_device() -> None:
    assert parse_arguments(["--data-directory", "x"]).device is Device.AUTO
    assert parse_arguments(["--data-directory", "x", "--device", "cpu"]).device is Device.CPU


@pytest.mark.usefixtures("caplog")
def test_cards_are_read_with_what_decides_and_mute_ones_left_out() -> None:
    gpus = [FakeGpu("A", 9, 8), FakeGpu("B", 9, 8, fails="capability")]
    (card,) = read_cards(lambda: FakeNvml(gpus))
    assert (card.pool.name, card.pool.label) == ("gpu0", "A")
    assert card.words == ("compute capability 9.0", "driver 580.65.06")
    assert card.uuid == "GPU-1"


def cuda(
    monkeypatch: pytest.MonkeyPatch, *, built: str | None = "13.0", there: bool = True
) -> None:
    """A torch that sees two cards."""
    uuids = [SimpleNamespace(uuid="0"), SimpleNamespace(uuid="1")]
    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: uuids[index])
    monkeypatch.setattr(driver, "find_spec", lambda _name: object())
    monkeypatch.setattr(driver, "_check_compiler", lambda: None)


def test_a_card_is_found_among_cuda_s_devices_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda(monkeypatch)
    assert device_of(CARD) == torch.device("cuda", 1)
    with pytest.raises(DeviceLost, match="not shown"):
        device_of(replace(CARD, uuid="GPU-7"))


def test_a_driver_that_is_too_old_is_told_with_both_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda(monkeypatch, there=False)
    with pytest.raises(DeviceLost, match=r"580\.65 does not run CUDA 13\.0, which needs 580 or"):
        device_of(CARD)


def test_a_torch_for_processors_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda(monkeypatch, built=None)
    with pytest.raises(DeviceLost, match="processors only"):
        device_of(CARD)


def test_without_triton_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda(monkeypatch)
    monkeypatch.setattr(driver, "find_spec", lambda _name: None)
    with pytest.raises(DeviceLost, match="Triton"):
        device_of(CARD)


def test_a_card_s_states_are_its_own(tmp_path: Path) -> None:
    source = wide_source()
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"x" * 500)
    source.files = (path,)
    layout = StateLayout(KvFormat.BF16, 64, 4096, {0: 1})
    facts = [
        dict(identity_of(source, model_spec(source), layout, CONFIG, card).facts)
        for card in (None, CARD, replace(CARD, driver="581.1"))
    ]
    assert facts[0] != facts[1] != facts[2]
    assert facts[1]["gpu"] == "NVIDIA Test" and facts[1]["driver"] == "driver 580.65"
    assert "processor" in facts[0] and "processor" not in facts[1]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_script(path, [" one", " two"])
    return path


def loader(ledger: Ledger, folder: Path, card: GpuCard, build: RunnerBuilder) -> CheckpointLoader:
    ram = PoolReading(RAM, 8 * GIB, 4 * GIB)
    return CheckpointLoader(
        EngineConfig(folder, threads=1),
        ledger,
        lambda: build,
        measures=Measures(lambda: ram, lambda: (card,)),
    )


def silent(_phase: str, _done: int, _total: int) -> None:
    """Take no notice of progress."""


def wish(model: Path) -> Load:
    return Load(request=1, path=str(model), context_tokens=512, streams=1)


class Built(Exception):
    """Ends a load once the runner's parts are known."""


def test_a_model_is_loaded_onto_the_card_with_all_its_memory(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "device_of", lambda _card: torch.device("cpu"))
    ledger = Ledger({RAM: 0, "gpu0": 0, "pinned": 0}, behind={"pinned": RAM})
    seen: list[tuple[RunnerParts, torch.dtype, dict[str, int]]] = []

    def build(parts: RunnerParts) -> Runner:
        held = {pool.name: pool.held_bytes for pool in ledger.census()}
        seen.append((parts, parts.kv.tensors[0].dtype, held))
        raise Built

    with pytest.raises(Built):
        loader(ledger, tmp_path, CARD, build).load(wish(model), silent)
    parts, dtype, held = seen[0]
    assert parts.gpu is not None
    assert (parts.gpu.device, parts.gpu.pool) == (torch.device("cpu"), "gpu0")
    assert parts.gpu.chunk_rows == 4096
    assert dtype is torch.bfloat16
    assert held["gpu0"] > 832 * MEBIBYTE
    ledger.close()


def test_a_card_without_room_leaves_the_model_to_the_processor_and_says_so(
    tmp_path: Path, model: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "device_of", lambda _card: torch.device("cpu"))
    ledger = Ledger({RAM: 0, "gpu0": 0, "pinned": 0}, behind={"pinned": RAM})
    small = replace(CARD, pool=replace(CARD.pool, free_bytes=GIB + 1, others_bytes=23 * GIB - 1))
    seen: list[RunnerParts] = []

    def build(parts: RunnerParts) -> Runner:
        seen.append(parts)
        raise Built

    with caplog.at_level(logging.WARNING), pytest.raises(Built):
        loader(ledger, tmp_path, small, build).load(wish(model), silent)
    assert seen[0].gpu is None
    assert "NVIDIA Test" in caplog.text and "GPU memory" in caplog.text
    ledger.close()


def test_what_the_process_has_on_the_card_already_is_room_for_its_model(
    tmp_path: Path, model: Path
) -> None:
    """The driver's context stays when a model is unloaded, and every plan counts it."""
    ledger = Ledger({RAM: 0, "gpu0": 0, "pinned": 0}, behind={"pinned": RAM})
    question = Plan(request=1, path=str(model), context_tokens=512, streams=1)

    def build(parts: RunnerParts) -> Runner:
        raise Built(parts)

    def room(own_bytes: int) -> int:
        pool = PoolReading("gpu0", 24 * GIB, 20 * GIB, 4 * GIB - own_bytes, "NVIDIA Test")
        found = loader(ledger, tmp_path, replace(CARD, pool=pool), build).plan(question)
        return next(each.free_bytes for each in found.pools if each.name == "gpu0")

    assert room(GIB) - room(0) == GIB
    ledger.close()


def test_what_a_load_would_do_is_what_is_planned(tmp_path: Path, model: Path) -> None:
    ledger = Ledger({RAM: 0, "gpu0": 0, "pinned": 0}, behind={"pinned": RAM})

    def build(parts: RunnerParts) -> Runner:
        raise Built(parts)

    question = Plan(request=1, path=str(model), context_tokens=512, streams=1)
    found = loader(ledger, tmp_path, CARD, build).plan(question)
    assert found.device == "GPU, NVIDIA Test" and found.kv_format == "bf16"
    small = replace(CARD, pool=replace(CARD.pool, free_bytes=GIB, others_bytes=23 * GIB))
    assert loader(ledger, tmp_path, small, build).plan(question).device.startswith("CPU")
    ledger.close()
