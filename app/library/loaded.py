"""Which model is loaded, being loaded or wanted, and what to say about it.

Drives the client's load requests over engine deaths; owns no memory itself. UI thread only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.errors import AppError, failure_sentence
from app.library.catalogue import ENDING, STARTER
from app.link.bridge import EngineBridge
from app.link.client import EngineClient
from app.link.events import EngineDied, EngineReady
from engine.protocol import EngineMessage, Failure, Loaded, ModelFacts, Progress


class ModelPhase(Enum):
    """Where the model stands."""

    ABSENT = auto()
    STARTING = auto()
    LOADING = auto()
    READY = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class ModelState:
    """What the window shows of the model.

    Attributes:
        name: what to call it, empty while nothing is wanted.
        fraction: how much of it is loaded, 0 to 1; only while loading.
        facts: of the loaded checkpoint; None until it is ready.
        sentence: why it failed; only then.
        detail: for a report, behind "Details".
    """

    phase: ModelPhase
    name: str = ""
    fraction: float = 0.0
    facts: ModelFacts | None = None
    sentence: str = ""
    detail: str = ""


def title_of(path: Path) -> str:
    """What a checkpoint is called before it has told its own name."""
    return STARTER.title if path.name == STARTER.file_name else path.name.removesuffix(ENDING)


class LoadedModel(QObject):
    """Keeps the wanted checkpoint loaded. Emits ``changed`` with each new ``ModelState``.

    ``death`` is the engine's last one, None while it never died.
    """

    changed = Signal(object)

    def __init__(self, client: EngineClient, bridge: EngineBridge, parent: QObject) -> None:
        super().__init__(parent)
        self._client = client
        self._bridge = bridge
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
        self._wanted = path
        self._by_itself = by_itself
        if path is None:
            # Told also where nothing was wanted before: now it is known that there is nothing.
            self.state = ModelState(ModelPhase.ABSENT)
            self.changed.emit(self.state)
        elif self._client.ready:
            self._load(path)
        else:
            self._show(ModelState(ModelPhase.STARTING, title_of(path)))

    def try_again(self) -> None:
        """Load what failed once more, starting the engine where it had given up."""
        self._client.start()
        self.want(self._wanted)

    def _load(self, path: Path) -> None:
        self._show(ModelState(ModelPhase.LOADING, title_of(path)))
        try:
            self._request = self._client.load(
                path, on_message=self._bridge.on_ui(self._on_message), by_itself=self._by_itself
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
                self._on_loaded(message.model)
            case Failure():
                # A dead engine is told by its own event, which also says what happens next.
                if message.code != "engine-died":
                    self._fail(failure_sentence(message), f"{message.code}: {message.sentence}")

    def _on_loaded(self, facts: ModelFacts) -> None:
        path = Path(facts.path)
        name = STARTER.title if path.name == STARTER.file_name else facts.name or title_of(path)
        self._show(ModelState(ModelPhase.READY, name, facts=facts))

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
        elif self._wanted is not None:
            self._load(self._wanted)

    def _on_engine_died(self, died: EngineDied) -> None:
        self.death = died
        if died.restart_in_s is None and not died.outcome.asked:
            self._fail(died.outcome.sentence, died.outcome.detail)
        elif self._wanted is not None:
            self._show(ModelState(ModelPhase.STARTING, title_of(self._wanted)))

    def _fail(self, sentence: str, detail: str) -> None:
        name = title_of(self._wanted) if self._wanted is not None else ""
        self._show(ModelState(ModelPhase.FAILED, name, sentence=sentence, detail=detail))

    def _show(self, state: ModelState) -> None:
        if state != self.state:
            self.state = state
            self.changed.emit(state)
