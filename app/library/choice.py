"""Which checkpoint is loaded at start, and how a person chooses another. UI thread only.

Looks through the folders on a thread of its own, which it owns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QWidget

from app.desktop.answers import Background
from app.directories import Directories
from app.errors import AppError
from app.language.words import tr
from app.library.catalogue import Catalogue
from app.library.folders import WEIGHTS, is_published, look
from app.library.loaded import LoadedModel
from app.settings.file import SettingsFile
from app.settings.record import Settings

log = logging.getLogger(__name__)


class ModelChoice(QObject):
    """Finds the default checkpoint and has it loaded; remembers what a person chose instead."""

    def __init__(
        self,
        model: LoadedModel,
        places: Directories,
        settings: SettingsFile,
        save: Callable[[Settings], None],
        on_error: Callable[[AppError], None],
    ) -> None:
        super().__init__(model)
        self._model = model
        self._places = places
        self._settings = settings
        self._save = save
        self._background = Background(self)
        self._background.failed.connect(on_error)

    def start(self) -> None:
        """Look for checkpoints; the default one is loaded once they are known."""
        self.look(self._on_found)

    def look(self, then: Callable[[Catalogue], None]) -> None:
        """Look through the folders as they are set now; ``then`` takes what is there."""
        folders = [Path(f).expanduser() for f in self._settings.settings.model_folders]
        everywhere = [self._places.models, *folders]
        remembered = self._places.checkpoints_file
        self._background.ask(lambda: look(everywhere, remembered).catalogue, then)

    def ask(self, window: QWidget) -> None:
        """Let a person choose a file."""
        dialog = QFileDialog(
            window, tr("Choose a model file"), "", tr("Models (*.gguf *.safetensors)")
        )
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.choose)
        dialog.open()

    def choose(self, name: str) -> None:
        """Load the file ``name`` now and at each start from now on.

        A file with weights of a published checkpoint stands for the folder it lies in.
        """
        path = Path(name)
        if path.suffix == WEIGHTS and is_published(path.parent):
            path = path.parent
        self._save(msgspec.structs.replace(self._settings.settings, default_model=str(path)))
        self._model.want(path)

    def close(self) -> None:
        """End the thread."""
        self._background.close()

    def _on_found(self, catalogue: Catalogue) -> None:
        wanted = self._settings.settings.default_model
        try:
            path = catalogue.default(wanted).path
        except AppError as error:
            file = Path(wanted).expanduser() if wanted is not None else None
            if file is None or not (file.is_file() or is_published(file)):
                log.info("no model to load reason=%s", error.sentence)
                self._model.want(None)
                return
            path = file
        self._model.want(path, by_itself=True)
