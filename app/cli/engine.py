"""An engine for the time of one command: started, watched, gone with it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.directories import Directories, directories
from app.errors import AppError, EngineRefused, EngineUnavailable, InputInvalid, ModelUnknown
from app.library.catalogue import ENDING, Catalogue
from app.library.folders import Look, is_published, look
from app.link.client import EngineClient, LinkLimits
from app.link.deaths.crash_guard import CrashGuard
from app.link.engine_log import EngineLog
from app.link.events import EngineEvent, LoadWish
from app.link.mailbox import Mailbox
from app.link.process import EngineCommand
from app.settings.record import Settings
from engine.protocol import Loaded, Settled, Welcome

MakeCommand = Callable[[Path], EngineCommand]
ANSWER_LIMIT_S: Final = 60.0
SETTLE_GRACE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class StartedEngine:
    """A connected engine and what it said of itself."""

    client: EngineClient
    welcome: Welcome

    def load(self, path: Path, wish: LoadWish | None = None) -> Loaded:
        """Load a checkpoint and wait; raises EngineRefused or EngineUnavailable."""
        with Mailbox() as box:
            self.client.load(path, on_message=box.put, wish=wish)
            return box.answer(Loaded)

    def settle(self, most_s: float) -> None:
        """Wait until what was kept is written, at most so long; Ctrl+C ends the wait.

        Nothing is lost for good where it is not: it is read again once.
        """
        try:
            with Mailbox() as box:
                self.client.settle(1000 * most_s, on_message=box.put)
                box.answer(Settled, most_s + SETTLE_GRACE_S)
        except KeyboardInterrupt:
            self.client.kill()
        except (EngineUnavailable, EngineRefused):
            return


@contextlib.contextmanager
def passing_engine(make_command: MakeCommand) -> Iterator[StartedEngine]:
    """An engine in a folder of its own, for questions that load nothing; needs no lock."""
    with tempfile.TemporaryDirectory(prefix="hearth-") as folder:
        own = directories(Path(folder))
        with _engine(own, make_command(own.data)) as engine:
            yield engine


@contextlib.contextmanager
def started_engine(places: Directories, command: EngineCommand) -> Iterator[StartedEngine]:
    """An engine that ends with the block, at once when the block is left by an interrupt.

    Raises:
        EngineUnavailable: it did not start or died; the sentence says where its log is.
    """
    try:
        with _engine(places, command) as engine:
            yield engine
    except EngineUnavailable as error:
        sentence = f"{error.sentence} Its log is {places.engine_log}."
        raise EngineUnavailable(sentence) from error


@contextlib.contextmanager
def _engine(places: Directories, command: EngineCommand) -> Iterator[StartedEngine]:
    engine_log, limits = EngineLog(places.engine_log), LinkLimits()
    client = EngineClient(
        command,
        engine_log=engine_log,
        guard=CrashGuard(places.crash_file),
        on_event=_nobody_listens,
        limits=limits,
    )
    client.start()
    try:
        try:
            welcome = client.wait_ready(limits.handshake_s)
        except EngineUnavailable as error:
            raise EngineUnavailable(" ".join((error.sentence, *engine_log.tail(1)))) from error
        yield StartedEngine(client, welcome)
    except KeyboardInterrupt:
        client.kill()
        raise
    finally:
        client.close()


def _nobody_listens(_event: EngineEvent) -> None:
    """A command learns of a death through the request that it waits for."""


def own_command(
    places: Directories, settings: Settings, make_command: MakeCommand
) -> EngineCommand:
    """The command of an engine that works on the profile as its settings say."""
    return (*make_command(places.data), *settings.engine_arguments())


def installed(places: Directories, settings: Settings) -> Look:
    """What checkpoints the profile's folders hold."""
    folders = [places.models, *(Path(folder).expanduser() for folder in settings.model_folders)]
    return look(folders, places.checkpoints_file)


def chosen_model(
    named: str | None, last: str | None, settings: Settings, catalogue: Catalogue
) -> Path:
    """The file of the model that was named, was used last, or is the usual one.

    Raises:
        ModelUnknown: there is none, or the name means none or several.
        InputInvalid: a file was named that is not there.
    """
    if named is not None:
        return _named(named, catalogue)
    if last is not None:
        # A chat's last model may be gone since; the usual one then goes on.
        with contextlib.suppress(AppError):
            return _named(last, catalogue)
    return catalogue.default(settings.default_model).path


def _named(name: str, catalogue: Catalogue) -> Path:
    path = Path(name).expanduser()
    try:
        if path.is_file() or is_published(path):
            return path.absolute()
        is_path = path.name != name or path.exists()
    except (OSError, ValueError) as error:
        raise InputInvalid(f"The model {name!r} cannot be looked at: {error}.") from error
    try:
        return catalogue.find(name).path
    except ModelUnknown:
        if path.is_dir():
            # The engine finds the model in it, or says what the folder lacks.
            return path.absolute()
        if is_path or name.lower().endswith(ENDING):
            raise InputInvalid(f"There is no model file {name}.") from None
        raise
