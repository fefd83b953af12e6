"""The loader: a path and a wish become a plan or a loaded model.

Reads headers and plans without torch; only a real load imports it. Owns nothing between calls.
"""

from __future__ import annotations

import importlib
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.remote.names import ENDPOINT, HubName, hub_name
from engine.checkpoint.source import CheckpointSource
from engine.config import Compute, EngineConfig
from engine.device import device_facts
from engine.errors import DeviceLost, MemoryRefused
from engine.gpu.cards.choice import Choice, choose, without
from engine.loading.head import without_copy
from engine.loading.inspection import inspect_checkpoint
from engine.loading.loaded import LoadedModel
from engine.loading.planning import loadable, machine_for, place, planned, room
from engine.loading.prompts import CheckpointPrompts
from engine.memory.gpus import GpuCard
from engine.memory.ledger import Ledger
from engine.memory.machine import MachineReading, refresh
from engine.memory.placement import Machine, Plan
from engine.memory.pools import PINNED, RAM, PoolReading, capacity_bytes, read_ram
from engine.models import model_spec
from engine.models.spec import ModelSpec
from engine.protocol import CheckpointFacts, Load, ModelFacts, Phase, Planned
from engine.protocol import Plan as PlanWish
from engine.sampling.recommended import completed
from engine.states.border import StateLibrary
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from engine.loading.assembly import GpuUse, RunnerBuilder

CACHE_FOLDER: Final = "cache"
HUB_FOLDER: Final = "hub"

_LOG = logging.getLogger(__name__)
Report = Callable[[Phase, int, int], None]


@dataclass(frozen=True, slots=True)
class Measures:
    """What is asked of the machine when a model is planned: its RAM and its GPUs, as they are."""

    ram: Callable[[], PoolReading] = read_ram
    cards: Callable[[], tuple[GpuCard, ...]] = tuple


@dataclass(frozen=True, slots=True)
class _Fitting:
    """A plan that fits, the GPU it is for, and what a person should know of that."""

    plan: Plan
    gpu: GpuUse | None
    notes: tuple[str, ...] = ()


class CheckpointLoader:
    """Implements ``engine.loop.Loader`` for checkpoints on disk."""

    def __init__(
        self,
        config: EngineConfig,
        ledger: Ledger,
        builder: Callable[[], RunnerBuilder] | None = None,
        measures: Measures = Measures(),
        *,
        library: StateLibrary | None = None,
        hub: str = ENDPOINT,
    ) -> None:
        self._config = config
        self._hub = hub
        self._ledger = ledger
        self._builder = builder or _own_builder
        self._measures = measures
        self._library = library

    def load(self, wish: Load, report: Report) -> LoadedModel:
        """Open, plan, allocate, build and warm.

        Raises:
            EngineError: of the kind that says why not; everything taken is given back by then.
        """
        report("open", 0, 1)
        with ExitStack() as stack:
            source = stack.enter_context(open_checkpoint(Path(wish.path)))
            spec = without_copy(model_spec(source), source)
            found = self._fitting(source, spec, wish)
            plan = found.plan
            assembly = importlib.import_module("engine.loading.assembly")
            build = self._builder()
            report("open", 1, 1)  # what is taken from here on is the model's
            report("tokenizer", 0, 1)
            tokenizer = Tokenizer(source.tokenizer, self._config.data_directory / CACHE_FOLDER)
            template = stack.enter_context(ChatTemplate(source.chat_template, tokenizer))
            template.start()
            served = assembly.assemble(
                assembly.Parts(source, spec, plan, plan.streams, self._library, found.gpu),
                build,
                self._config,
                ledger=self._ledger,
                report=report,
                stack=stack,
            )
            tokens = source.tokenizer.tokens
            defaults = completed(source.generation_defaults, source.architecture, tokens)
            prompts = CheckpointPrompts(tokenizer, template, defaults, spec.vocabulary)
            notes = tokenizer.notes + found.notes
            facts = _model_facts(wish.path, source, spec, plan, template=template, notes=notes)
            _LOG.info(
                "model planned context=%d chats=%d states=%d pages=%s slots=%d kv=%s host_bytes=%d",
                *(plan.context_tokens, plan.streams, plan.states, plan.page_counts),
                *(plan.slot_count, plan.kv_format.value, plan.host_state_bytes),
            )
            return LoadedModel(facts, plan.lines, served, prompts, stack.pop_all())

    def plan(self, wish: PlanWish) -> Planned:
        """What loading would take, as if nothing else were loaded."""
        machine = self._processor(wish)
        local = Path(wish.path)
        remote = None if local.exists() else hub_name(wish.path)
        with open_checkpoint(local) if remote is None else self._on_hub(remote) as source:
            spec = model_spec(source)
            if remote is None:
                spec = without_copy(spec, source)
            choice = Choice(None) if wish.gpu else self._choice(spec)
            if choice.card is not None:
                there = self._with_card(machine, choice.card)
                found = place(source, spec, wish, there, wide=False)
                if isinstance(found, Plan) and found.not_yet is None:
                    return planned(wish.request, found, there.device)
            found = place(source, spec, wish, machine, wide=self._wide)
        return planned(wish.request, found, machine.device)

    def inspect(self, path: str) -> CheckpointFacts:
        """What a file is, without loading it."""
        return inspect_checkpoint(path)

    def _on_hub(self, name: HubName) -> CheckpointSource:
        """What has that name on the hub, by its header alone."""
        # Only who asks for it waits for the network's libraries to be imported.
        remote = importlib.import_module("engine.checkpoint.remote.source")
        folder = self._config.data_directory / CACHE_FOLDER / HUB_FOLDER
        source: CheckpointSource = remote.open_remote(remote.Hub(self._hub), name, folder)
        return source

    @property
    def _wide(self) -> bool:
        return self._config.compute is Compute.FLOAT32

    def _fitting(self, source: CheckpointSource, spec: ModelSpec, wish: Load) -> _Fitting:
        """A plan for the GPU where it can be, else one for the processor; the log says why."""
        machine, choice = self._processor(wish), self._choice(spec)
        if choice.card is not None:
            try:
                return self._on_gpu(source, spec, wish, machine, card=choice.card)
            except (DeviceLost, MemoryRefused) as error:
                choice = without(choice.card, error.sentence)
        for note in choice.notes:
            _LOG.warning("GPU not used reason=%r", note)
        plan = loadable(place(source, spec, wish, machine, wide=self._wide))
        return _Fitting(plan, None, choice.notes)

    def _on_gpu(
        self,
        source: CheckpointSource,
        spec: ModelSpec,
        wish: Load,
        machine: Machine,
        *,
        card: GpuCard,
    ) -> _Fitting:
        """Raises DeviceLost where torch cannot use the card, MemoryRefused if it is small."""
        device = importlib.import_module("engine.gpu.cards.driver").device_of(card)
        spends = wish.spends_headroom
        there = self._with_card(machine, card, spends_headroom=spends)
        plan = loadable(place(source, spec, wish, there, wide=False))
        assembly = importlib.import_module("engine.loading.assembly")
        return _Fitting(plan, assembly.GpuUse(card, device))

    def _choice(self, spec: ModelSpec) -> Choice:
        """What computes, among the cards whose memory is on the accounts."""
        known = {pool.name for pool in self._ledger.census()}
        return choose(
            self._config, [card for card in self._measures.cards() if card.pool.name in known], spec
        )

    def _processor(self, wish: Load | PlanWish) -> Machine:
        """The machine as it is, or with the GPU of a wish, as if nothing were loaded."""
        reading = self._measures.ram()
        spends = isinstance(wish, Load) and wish.spends_headroom
        if self._ledger.pool(RAM).held_bytes == 0:
            self._ledger.set_capacity(RAM, capacity_bytes(reading, spends_headroom=spends))
        else:
            refresh(self._ledger, lambda: MachineReading((reading,)))
        ram = room(reading, self._ledger.pool(RAM).capacity_bytes)
        gpu = wish.gpu if isinstance(wish, PlanWish) else None
        return machine_for(ram, gpu, device_facts(self._config.threads).name)

    def _with_card(
        self, machine: Machine, card: GpuCard, *, spends_headroom: bool = False
    ) -> Machine:
        """The same with a card, whose memory was read just now."""
        pool = card.pool
        # The driver's context, once it is there, is ours and counted in the plan again.
        own = pool.total_bytes - pool.free_bytes - pool.others_bytes
        held = max(own, self._ledger.pool(pool.name).held_bytes)
        free = capacity_bytes(pool, held, spends_headroom=spends_headroom)
        self._ledger.set_capacity(pool.name, free)
        if self._ledger.pool(PINNED).held_bytes == 0:
            self._ledger.set_capacity(PINNED, machine.pinned.free_bytes)
        return Machine(machine.ram, room(pool, free), f"GPU, {pool.label}")


def _own_builder() -> RunnerBuilder:
    builder: RunnerBuilder = importlib.import_module("engine.backend").build_runner
    return builder


def _model_facts(
    path: str,
    source: CheckpointSource,
    spec: ModelSpec,
    plan: Plan,
    *,
    template: ChatTemplate,
    notes: tuple[str, ...],
) -> ModelFacts:
    return ModelFacts(
        name=source.name,
        path=path,
        architecture=source.architecture,
        context_tokens=plan.context_tokens,
        vocabulary=spec.vocabulary,
        file_bytes=sum(file.stat().st_size for file in source.files),
        format=format_name(source),
        has_template=source.chat_template is not None,
        template_hash=template.hash,
        can_think=template.can_think,
        can_call_tools=template.tool_syntax is not None,
        notes=spec.notes + notes,
    )


def format_name(source: CheckpointSource) -> str:
    """The format that holds the most bytes, such as "Q4_1"."""
    sizes: Counter[str] = Counter()
    for facts in source.tensors.values():
        sizes[facts.format] += facts.size_bytes
    return sizes.most_common(1)[0][0].upper() if sizes else ""
