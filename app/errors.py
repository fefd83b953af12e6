"""Every error of the app, as one tree, and the one table from error code to sentence.

    AppError                    code, sentence, exit_code
    ├── InputInvalid            what a person typed makes no sense; exit code 2
    │   ├── ModelUnknown        no installed checkpoint has that name
    │   └── RequestTooLarge     the conversation does not fit into one frame
    ├── DirectoryUnusable       a folder cannot be made, read or written
    ├── DirectoryInUse          another window or command has this data directory
    ├── SettingsInvalid         the settings file cannot be read as settings
    ├── StoreError              the conversations cannot be read or written
    │   ├── StoreFull           the disk is full
    │   ├── StoreNewer          written by a newer version of Hearth
    │   └── StoreDamaged        not a database, or a damaged one
    ├── ModelHeldBack           it stopped the engine twice; only a person loads it again
    ├── EngineUnavailable       no engine is connected: starting, restarting or given up
    └── EngineRefused           a Failure of the engine, as an exception

``sentence`` is what a person reads: what happened, why, what to do. It never holds a traceback, an
exit code or a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from engine.protocol import Failure

Numbers = Mapping[str, int | float | str]

EXIT_FAILURE: Final = 1
EXIT_INPUT: Final = 2


class AppError(Exception):
    """Something the app refuses or cannot do, told in one sentence."""

    code: ClassVar[str] = "app"
    exit_code: ClassVar[int] = EXIT_FAILURE

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class InputInvalid(AppError):
    """What a person typed makes no sense."""

    code = "input-invalid"
    exit_code = EXIT_INPUT


class ModelUnknown(InputInvalid):
    """No installed checkpoint, or more than one, has the name that was given."""

    code = "model-unknown"


class RequestTooLarge(InputInvalid):
    """A request does not fit into one frame of the protocol."""

    code = "request-too-large"


class DirectoryUnusable(AppError):
    """A folder cannot be made, read or written."""

    code = "directory-unusable"


class DirectoryInUse(AppError):
    """Another window or command has this data directory."""

    code = "directory-in-use"


class SettingsInvalid(AppError):
    """The settings file cannot be read as settings."""

    code = "settings-invalid"


class StoreError(AppError):
    """The conversations cannot be read or written."""

    code = "store"


class StoreFull(StoreError):
    """The disk that holds the conversations is full."""

    code = "store-full"


class StoreNewer(StoreError):
    """The conversations were written by a newer version of Hearth."""

    code = "store-newer"


class StoreDamaged(StoreError):
    """The file of conversations is not a database, or a damaged one."""

    code = "store-damaged"


class ModelHeldBack(AppError):
    """A checkpoint stopped the engine twice in a row, so it is not loaded by itself."""

    code = "model-held-back"

    def __init__(self) -> None:
        super().__init__(
            "This model stopped the engine twice, so it is not loaded by itself again."
        )


class EngineUnavailable(AppError):
    """No engine is connected."""

    code = "engine-unavailable"


class EngineRefused(AppError):
    """The engine answered a request with a Failure."""

    code = "engine-refused"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure_sentence(failure))
        self.failure = failure


ENGINE_DIED: Final = "engine-died"


def failure_sentence(failure: Failure) -> str:
    """What a person reads of a failure: the app's own sentence where it has a better one."""
    make = SENTENCES.get(failure.code)
    if make is None:
        return failure.sentence
    return make(failure.numbers) or failure.sentence


def _memory_refused(numbers: Numbers) -> str | None:
    needed, free = numbers.get("needed_bytes"), numbers.get("free_bytes")
    if not isinstance(needed, int | float) or not isinstance(free, int | float):
        return None
    pool = numbers.get("pool")
    where = f" in {pool}" if isinstance(pool, str) else ""
    return (
        f"Needs {gibibytes(needed)}; {gibibytes(free)} is free{where}. "
        "Choose a shorter context or a smaller model."
    )


def _engine_died(_numbers: Numbers) -> str | None:
    return "The engine stopped and was restarted. Your chat is intact."


def _device_lost(_numbers: Numbers) -> str | None:
    return "The device failed, so the engine was started again. Your chat is intact."


def _protocol(_numbers: Numbers) -> str | None:
    return "The app and its engine did not understand each other, so the engine was started again."


SENTENCES: Final[Mapping[str, Callable[[Numbers], str | None]]] = MappingProxyType(
    {
        ENGINE_DIED: _engine_died,
        "device-lost": _device_lost,
        "memory-refused": _memory_refused,
        "protocol": _protocol,
    }
)


def gibibytes(count: float) -> str:
    """Bytes as people read memory: ``13.1 GiB``, below one GiB ``98 MiB``."""
    if count >= 2**30:
        return f"{count / 2**30:.1f} GiB"
    return f"{count / 2**20:.0f} MiB"
