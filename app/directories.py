"""Where Hearth keeps things: one record of folders, made once at start.

Without an explicit data directory the platform's own places are taken (platformdirs); with one,
everything lies beneath it, so that a test or a second profile touches nothing else. Folders are
made for the person alone (0700) where the system has modes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from app.errors import DirectoryUnusable

APPLICATION = "hearth"


@dataclass(frozen=True, slots=True)
class Directories:
    """The folders and files of one profile; all absolute.

    Attributes:
        data: holds everything below; also given to the engine.
        settings_file: the settings, TOML.
        models: checkpoints that Hearth fetched.
    """

    data: Path
    settings_file: Path
    models: Path

    @property
    def store_file(self) -> Path:
        """The conversations, SQLite."""
        return self.data / "chats.sqlite3"

    @property
    def blobs(self) -> Path:
        """Attachments by content hash."""
        return self.data / "blobs"

    @property
    def states(self) -> Path:
        """Kept prompt states, which the engine alone reads and writes."""
        return self.data / "states"

    @property
    def lock_file(self) -> Path:
        """Who has this data directory."""
        return self.data / "hearth.lock"

    @property
    def crash_file(self) -> Path:
        """Which checkpoints stopped the engine."""
        return self.data / "engine-crashes.json"

    @property
    def checkpoints_file(self) -> Path:
        """Which checkpoints were seen last, so that one that is away keeps its line."""
        return self.data / "checkpoints.json"

    @property
    def engine_log(self) -> Path:
        """What the engine wrote to its standard error, newest; older parts beside it."""
        return self.data / "logs" / "engine.log"


def directories(data_directory: Path | None = None) -> Directories:
    """The folders of the profile under ``data_directory``, or of this user; makes nothing."""
    if data_directory is not None:
        data = Path(os.path.abspath(data_directory))  # noqa: PTH100 - no link is followed
        return Directories(data, data / "settings.toml", data / "models")
    data = platformdirs.user_data_path(APPLICATION, appauthor=False)
    settings = platformdirs.user_config_path(APPLICATION, appauthor=False) / "settings.toml"
    return Directories(data, settings, data / "models")


def make_private(folder: Path) -> None:
    """Make ``folder`` and its parents; the folder itself is for this user alone.

    Raises:
        DirectoryUnusable: it cannot be made, or something else is in its place.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DirectoryUnusable(
            f"The folder {folder} cannot be made: {error.strerror or error}."
        ) from error
