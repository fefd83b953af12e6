"""Loading: a real tiny checkpoint runs, and whatever fails on the way leaves nothing held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from engine.config import Compute, EngineConfig
from engine.errors import EngineError, MemoryRefused, RequestInvalid
from engine.loading.inspection import inspect_checkpoint
from engine.loading.loader import CheckpointLoader, Measures
from engine.memory.ledger import Ledger
from engine.memory.pools import MEBIBYTE, RAM, PoolReading
from engine.protocol import (
    ChatMessage,
    EngineMessage,
    Finished,
    Generate,
    KvWish,
    Load,
    Plan,
    Sampling,
)
from engine.runner import Runner, RunnerParts
from engine.serving.rounds import Serving
from tests.helpers.tiny_gguf import write_script

PIECES = [" one", " two", " three"]
GREEDY = Sampling(temperature=0.0, max_tokens=50)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_script(path, PIECES)
    return path


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    ledger = Ledger({RAM: 0})
    yield ledger
    ledger.close()


def loader(
    ledger: Ledger,
    folder: Path,
    free_bytes: int = 2048 * MEBIBYTE,
    compute: Compute = Compute.AUTO,
) -> CheckpointLoader:
    """A loader on a machine with so much free memory beside the headroom."""
    total = 512 * MEBIBYTE + free_bytes
    config = EngineConfig(data_directory=folder, compute=compute, threads=1)
    return CheckpointLoader(
        config, ledger, measures=Measures(ram=lambda: PoolReading(RAM, total, total))
    )


def plan_of(wish: Load) -> Plan:
    return Plan(request=9, path=wish.path, context_tokens=wish.context_tokens, streams=1)


def silent(_phase: str, _done: int, _total: int) -> None:
    """Take no notice of progress."""


@pytest.mark.parametrize("compute", [Compute.AUTO, Compute.FLOAT32])
def test_a_loaded_checkpoint_says_its_script(
    ledger: Ledger, tmp_path: Path, model: Path, compute: Compute
) -> None:
    phases: list[str] = []
    loaded = loader(ledger, tmp_path, compute=compute).load(
        Load(request=1, path=str(model), context_tokens=512, streams=2),
        lambda phase, _done, _total: phases.append(phase),
    )
    sent: list[EngineMessage] = []
    serving = Serving(loaded.served, sent.append, lambda: 0)
    wish = Generate(
        request=2, messages=(ChatMessage(role="user", text="hi"),), sampling=GREEDY, sibling=3
    )
    serving.accept(*loaded.prompts.prepare(wish, 0))
    serving.accept(*loaded.prompts.prepare(Generate(request=3, raw="hi", sampling=GREEDY), 0))
    while serving.has_work:
        serving.round()
    said = {frame.request: frame for frame in sent if isinstance(frame, Finished)}
    assert (said[2].text, said[2].stop_reason) == ("".join(PIECES), "end-of-turn")
    assert (said[2].template_hash, said[3].template_hash) == (loaded.facts.template_hash, None)
    assert loaded.prompts.count("hi") == 2
    assert (loaded.facts.context_tokens, loaded.facts.architecture) == (512, "llama")
    assert {"open", "tokenizer", "weights", "warm-up"} <= set(phases)
    planned = {line.owner: line.bytes for line in loaded.plan}
    held = dict(ledger.pool(RAM).holders)
    assert set(held) - {"KV pages"} <= {"weights", "workspace", "vocabulary"}
    assert len(held) >= 2
    assert sum(held.values()) <= sum(planned.values())
    assert held["KV pages"] == planned["KV pages"] + planned["kept states"]
    loaded.close()
    loaded.close()
    assert ledger.pool(RAM).held_bytes == 0


def test_the_plan_of_a_path_needs_no_load_and_says_what_does_not_fit(
    ledger: Ledger, tmp_path: Path, model: Path
) -> None:
    wish = Plan(request=5, path=str(model), streams=2)
    planned = loader(ledger, tmp_path).plan(wish)
    assert (planned.request, planned.context_tokens, planned.refusal) == (5, 4096, None)
    assert (planned.streams, planned.kv_format, planned.chunk_rows) == (2, "fp16", 256)
    assert planned.placement == "resident"
    assert planned.device.startswith("CPU, ")
    refused = loader(ledger, tmp_path, free_bytes=1000).plan(wish)
    assert refused.refusal is not None
    for words in ("needs at least", "0.0 of 0.5 GiB are free", "reserve for other programs 0.5"):
        assert words in refused.refusal
    assert (refused.placement, refused.streams) == (None, 0)
    assert (refused.pools[0].name, refused.pools[0].free_bytes) == ("ram", 1000)


def test_a_model_that_does_not_fit_is_refused_with_numbers(
    ledger: Ledger, tmp_path: Path, model: Path
) -> None:
    with pytest.raises(MemoryRefused) as refused:
        loader(ledger, tmp_path, free_bytes=1000).load(Load(request=1, path=str(model)), silent)
    assert refused.value.numbers["free_bytes"] == 1000
    assert int(refused.value.numbers["needed_bytes"]) > 1000
    assert refused.value.numbers["fitting_context_tokens"] == 0
    assert (refused.value.numbers["pool"], refused.value.numbers["chats"]) == ("ram", 1)


def test_what_is_left_to_others_may_be_spent_but_no_byte_more_than_is_free(
    ledger: Ledger, tmp_path: Path, model: Path
) -> None:
    wish = Load(request=1, path=str(model), context_tokens=512, streams=1)
    plain = loader(ledger, tmp_path)
    # The reserve is 512 MiB of so small a machine: far more than this model takes.
    short = loader(ledger, tmp_path, free_bytes=1000)
    with pytest.raises(MemoryRefused):
        short.load(wish, silent)
    loaded = short.load(msgspec.structs.replace(wish, spends_headroom=True), silent)
    assert ledger.pool(RAM).capacity_bytes == 512 * MEBIBYTE + 1000
    loaded.close()
    full = CheckpointLoader(
        EngineConfig(data_directory=tmp_path, threads=1),
        ledger,
        measures=Measures(ram=lambda: PoolReading(RAM, 8192 * MEBIBYTE, MEBIBYTE)),
    )
    with pytest.raises(MemoryRefused) as refused:
        full.load(msgspec.structs.replace(wish, spends_headroom=True), silent)
    assert refused.value.numbers["free_bytes"] == MEBIBYTE
    assert plain.plan(plan_of(wish)).refusal is None
    assert ledger.pool(RAM).capacity_bytes == 2048 * MEBIBYTE, "a plan counts the reserve again"


def test_k_and_v_in_eight_bits_are_planned_and_loaded_as_asked(
    ledger: Ledger, tmp_path: Path, model: Path
) -> None:
    held = {}
    wishes: tuple[KvWish, ...] = ("full", "fp8")
    for kv in wishes:
        loaded = loader(ledger, tmp_path).load(
            Load(request=1, path=str(model), context_tokens=2048, streams=2, kv=kv), silent
        )
        lines = {line.owner: line.bytes for line in loaded.plan}
        held[kv] = dict(ledger.pool(RAM).holders)["KV pages"]
        assert held[kv] == lines["KV pages"] + lines["kept states"]
        loaded.close()
    assert held["fp8"] < 0.6 * held["full"]


def test_a_plan_beside_a_loaded_model_is_as_if_nothing_were_loaded(
    ledger: Ledger, tmp_path: Path, model: Path
) -> None:
    first = loader(ledger, tmp_path)
    wish = Plan(request=1, path=str(model), context_tokens=1024)
    before = first.plan(wish)
    loaded = first.load(Load(request=2, path=str(model)), silent)
    assert first.plan(wish) == before
    loaded.close()


def test_a_senseless_context_is_refused(ledger: Ledger, tmp_path: Path, model: Path) -> None:
    with pytest.raises(RequestInvalid, match="1 token or more, not 0"):
        loader(ledger, tmp_path).plan(Plan(request=1, path=str(model), context_tokens=0))


@pytest.mark.parametrize("where", ["build", "warm"])
def test_a_load_that_fails_half_way_gives_everything_back(
    ledger: Ledger, tmp_path: Path, model: Path, where: str
) -> None:
    class Broken(EngineError):
        """What the test injects."""

    class Cold:
        """A runner that cannot compute."""

        grid_rows = chunk_rows = 256
        shares_steps = True

        def prompt_chunk(self, *_: object, **__: object) -> None:
            raise Broken("cold")

    def build(parts: RunnerParts) -> Runner:
        parts.resources.enter_context(parts.ledger.reserve("mine", {RAM: 10}))
        if where == "build":
            raise Broken("broken")
        return Cold()  # type: ignore[return-value]

    total = 3000 * MEBIBYTE
    broken = CheckpointLoader(
        EngineConfig(data_directory=tmp_path),
        ledger,
        builder=lambda: build,
        measures=Measures(ram=lambda: PoolReading(RAM, total, total)),
    )
    with pytest.raises(Broken):
        broken.load(Load(request=1, path=str(model)), silent)
    assert ledger.pool(RAM).held_bytes == 0


def test_raw_text_and_messages_together_make_no_sense(
    ledger: Ledger, tmp_path: Path, model: Path
) -> None:
    loaded = loader(ledger, tmp_path).load(Load(request=1, path=str(model)), silent)
    both = Generate(request=2, raw="x", messages=(ChatMessage(role="user", text="x"),))
    with pytest.raises(RequestInvalid, match="not both"):
        loaded.prompts.prepare(both, 0)
    first, _ = loaded.prompts.prepare(Generate(request=3, raw="x"), 0)
    again, _ = loaded.prompts.prepare(Generate(request=4, raw="x", sibling=1), 0)
    set_by_hand = Generate(request=5, raw="x", sampling=Sampling(seed=9))
    chosen, _ = loaded.prompts.prepare(set_by_hand, 0)
    assert first.rule.seed != again.rule.seed
    assert chosen.rule.seed == 9
    loaded.close()


def test_an_inspection_says_what_a_file_is_or_why_it_is_none(tmp_path: Path, model: Path) -> None:
    good = inspect_checkpoint(str(model))
    assert (good.architecture, good.context_tokens, good.problem) == ("llama", 4096, None)
    assert good.file_bytes == model.stat().st_size
    assert good.has_template
    assert good.vocabulary > 256
    (tmp_path / "page.gguf").write_text("<!doctype html>")
    assert "web page" in (inspect_checkpoint(str(tmp_path / "page.gguf")).problem or "")
    foreign = model.read_bytes().replace(b"llama", b"lorem")
    (tmp_path / "foreign.gguf").write_bytes(foreign)
    problem = inspect_checkpoint(str(tmp_path / "foreign.gguf")).problem
    assert problem is not None
    assert "'lorem'" in problem


def test_a_plan_beside_a_loaded_model_measures_again_and_revokes_nothing(
    ledger: Ledger, tmp_path: Path, model: Path
) -> None:
    wish = Plan(request=1, path=str(model), context_tokens=512, streams=1)
    ledger.set_capacity(RAM, 64 * MEBIBYTE)
    with ledger.reserve("another model", {RAM: 64 * MEBIBYTE}) as held:
        held.commit()
        assert loader(ledger, tmp_path, 1024 * MEBIBYTE).plan(wish).refusal is None
        assert ledger.pool(RAM).capacity_bytes >= 1024 * MEBIBYTE
        assert loader(ledger, tmp_path, -512 * MEBIBYTE).plan(wish).refusal is not None
        assert ledger.pool(RAM).held_bytes == 64 * MEBIBYTE
        assert ledger.pool(RAM).free_bytes == 0
