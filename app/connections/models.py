"""Connects the model's place in the top bar with the models on this computer.

Made by the composition once the models can be chosen.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QPoint

from app.library.catalogue import Catalogue
from app.library.choice import ModelChoice
from app.library.loaded import LoadedModel, ModelPhase
from app.look.theme import Look
from app.panels.models.picker import ModelPicker
from app.window import Window


class ModelConnections(QObject):
    """What a person does with models in the top bar is done."""

    def __init__(
        self, window: Window, model: LoadedModel, choice: ModelChoice, look: Look, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bar = window.bar
        self._model = model
        self._choice = choice
        self.picker = ModelPicker(look, window)
        self.picker.chosen.connect(self._on_chosen)
        self.picker.left.connect(window.page.composer.setFocus)
        window.bar.picker_wanted.connect(self.pick)
        window.bar.eject_wanted.connect(model.unload)

    def pick(self) -> None:
        """Look for models and open the list."""
        self._choice.look(self._on_found)

    def _on_found(self, catalogue: Catalogue) -> None:
        facts = self._model.state.facts
        loaded = Path(facts.path) if facts is not None else None
        self.picker.show_models(catalogue.installed, loaded)
        corner = QPoint(self._bar.name.x(), self._bar.height())
        self.picker.drop(self._bar.mapTo(self._bar.window(), corner))

    def _on_chosen(self, path: Path) -> None:
        state = self._model.state
        ready = state.phase is ModelPhase.READY and state.facts is not None
        if not ready or state.facts is None or Path(state.facts.path) != path:
            self._choice.choose(str(path))
