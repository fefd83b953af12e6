"""Which model is loaded, being loaded or wanted, and what to say about it.

Drives the client's load requests over engine deaths; owns no memory itself. UI thread only.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Signal

from app.errors import AppError, EngineUnavailable, MemoryRefusal, failure_sentence, memory_refusal
from app.library.catalogue import ENDING, STARTER
from app.link.bridge import EngineBridge
from app.link.client import EngineClient
from app.link.events import EngineDied, EngineReady, LoadWish
from engine.protocol import EngineMessage, Failure, Loaded, ModelFacts, PlanLine, Progress

USUAL: Final = LoadWish()


class ModelPhase(Enum):
    """Where the model stands."""

    ABSENT = auto()
    STARTING = auto()
    LOADING = auto()
    READY = auto()
    FAILED = auto()
    UNLOADED = auto()


@dataclass(frozen=True, slots=True)
class ModelState:
    """What the window shows of the model.

    Attributes:
        name: what to call it, empty while nothing is wanted.
        fraction: how much of it is loaded, 0 to 1; only while loading.
        facts: of the loaded checkpoint; None until it is ready. ``plan`` is what it took,
            ``streams`` how many chats it answers at once.
        sentence: why it failed; only then. ``refusal`` has the numbers where memory was short:
            then ``LoadedModel.shorten`` and ``load_anyway`` may help, or a smaller model.
        detail: for a report, behind "Details".
    """

    phase: ModelPhase
    name: str = ""
    fraction: float = 0.0
    facts: ModelFacts | None = None
    plan: tuple[PlanLine, ...] = ()
    streams: int = 1
    sentence: str = ""
    detail: str = ""
    refusal: MemoryRefusal | None = None


def title_of(path: Path) -> str:
    """What a checkpoint is called before it has told its own name."""
    return STARTER.title if path.name == STARTER.file_name else path.name.removesuffix(ENDING)


class LoadedModel(QObject):
    """Keeps the wanted checkpoint loaded. Emits ``changed`` with each new ``ModelState``.

    ``usual`` is how a checkpoint is loaded unless a refusal asked for another way, which holds for
    that checkpoint only. ``death`` is the engine's last one, None while it never died.
    """

    changed = Signal(object)

    def __init__(
        self,
        client: EngineClient,
        bridge: EngineBridge,
        parent: QObject,
        usual: LoadWish = USUAL,
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._bridge = bridge
        self._usual = self._wish = usual
        self._wanted: Path | None = None
        self._by_itself = False
        self._request = -1
        self.death: EngineDied | None = None
        self.state = ModelState(ModelPhase.ABSENT)
        bridge.ready.connect(self._on_engine_ready)
        bridge.died.connect(self._on_engine_died)

    def want(self, path: Path | None, *, by_itself: bool = False) -> None:
        """Load ``path`` as soon as an engine is there; None wants nothing.

        ``by_itself``: no person chose it just now, so one that stopped the engine twice is refused.
        """
        self._by_itself = by_itself
        self._want(path, self._usual)

    def try_again(self) -> None:
        """Load what failed once more, starting the engine where it had given up."""
        self._begin_again(self._wish)

    def unload(self) -> None:
        """Give the checkpoint's memory back, until ``try_again`` or another wish."""
        if self._wanted is None:
            return
        with contextlib.suppress(EngineUnavailable):
            self._request = self._client.unload(on_message=self._bridge.on_ui(self._on_message))
        self._show(ModelState(ModelPhase.UNLOADED, self.state.name))

    def shorten(self, context_tokens: int) -> None:
        """Load what was refused with a context that fits."""
        self._begin_again(replace(self._wish, context_tokens=context_tokens))

    def load_anyway(self) -> None:
        """Load what was refused into the memory that is left free for other programs."""
        self._begin_again(replace(self._wish, spends_headroom=True))

    def _begin_again(self, wish: LoadWish) -> None:
        self._client.start()
        self._by_itself = False
        self._want(self._wanted, wish)

    def _want(self, path: Path | None, wish: LoadWish) -> None:
        self._wanted, self._wish = path, wish
        if path is None:
            # Told also where nothing was wanted before: now it is known that there is nothing.
            self.state = ModelState(ModelPhase.ABSENT)
            self.changed.emit(self.state)
        elif self._client.ready:
            self._load(path)
        else:
            self._show(ModelState(ModelPhase.STARTING, title_of(path)))

    def _load(self, path: Path) -> None:
        self._show(ModelState(ModelPhase.LOADING, title_of(path)))
        try:
            self._request = self._client.load(
                path,
                on_message=self._bridge.on_ui(self._on_message),
                wish=self._wish,
                by_itself=self._by_itself,
            )
        except AppError as error:
            self._show(ModelState(ModelPhase.FAILED, title_of(path), sentence=error.sentence))

    def _on_message(self, message: EngineMessage) -> None:
        if getattr(message, "request", None) != self._request:
            return
        match message:
            case Progress():
                self._on_progress(message)
            case Loaded():
                self._on_loaded(message)
            case Failure():
                # A dead engine is told by its own event, which also says what happens next.
                if message.code != "engine-died":
                    self._fail(
                        failure_sentence(message),
                        f"{message.code}: {message.sentence}",
                        memory_refusal(message),
                    )

    def _on_loaded(self, loaded: Loaded) -> None:
        facts = loaded.model
        path = Path(facts.path)
        name = STARTER.title if path.name == STARTER.file_name else facts.name or title_of(path)
        streams = self._wish.streams
        self._show(
            ModelState(ModelPhase.READY, name, facts=facts, plan=loaded.plan, streams=streams)
        )

    def _on_progress(self, progress: Progress) -> None:
        if progress.phase in ("weights", "warm-up") and progress.total:
            fraction = progress.done / progress.total
            self._show(ModelState(ModelPhase.LOADING, self.state.name, fraction))

    def _on_engine_ready(self, ready: EngineReady) -> None:
        if ready.held_back is not None:
            self._fail(
                "This model stopped the engine twice, so it is not loaded by itself again.",
                ready.held_back.path,
            )
        elif self._wanted is not None and self.state.phase is not ModelPhase.UNLOADED:
            self._load(self._wanted)

    def _on_engine_died(self, died: EngineDied) -> None:
        self.death = died
        if died.restart_in_s is None and not died.outcome.asked:
            self._fail(died.outcome.sentence, died.outcome.detail)
        elif self._wanted is not None and self.state.phase is not ModelPhase.UNLOADED:
            self._show(ModelState(ModelPhase.STARTING, title_of(self._wanted)))

    def _fail(self, sentence: str, detail: str, refusal: MemoryRefusal | None = None) -> None:
        name = title_of(self._wanted) if self._wanted is not None else ""
        self._show(
            ModelState(ModelPhase.FAILED, name, sentence=sentence, detail=detail, refusal=refusal)
        )

    def _show(self, state: ModelState) -> None:
        if state != self.state:
            self.state = state
            self.changed.emit(state)
