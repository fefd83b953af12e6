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

import math
from collections.abc import Mapping
from dataclasses import dataclass
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
MEMORY_REFUSED: Final = "memory-refused"
REFUSAL_NUMBERS: Final = ("needed_bytes", "free_bytes", "others_bytes", "fitting_context_tokens")


def failure_sentence(failure: Failure) -> str:
    """What a person reads of a failure: the app's own sentence where it has a better one."""
    refusal = memory_refusal(failure)
    # One that is told in GiB also says what needs it and who holds the rest.
    if refusal is not None and "GiB" not in failure.sentence:
        return refusal.sentence
    return SENTENCES.get(failure.code, failure.sentence)


@dataclass(frozen=True, slots=True)
class MemoryRefusal:
    """What did not fit, in numbers.

    Attributes:
        pool: its name, such as "ram" or "gpu0"; empty where that was not told.
        others_bytes: what other programs hold there; 0 where that was not told.
        fitting_context_tokens: the longest context that would fit; 0 for none.
    """

    needed_bytes: int
    free_bytes: int
    pool: str = ""
    others_bytes: int = 0
    fitting_context_tokens: int = 0

    @property
    def sentence(self) -> str:
        """What a person reads."""
        needed, free = gibibytes(self.needed_bytes, up=True), gibibytes(self.free_bytes, up=False)
        said = f"Needs {needed}; {free} is free{_place_of(self.pool)}."
        if self.others_bytes:
            said += f" Other programs hold {gibibytes(self.others_bytes)}."
        if self.fitting_context_tokens:
            return f"{said} A context of {self.fitting_context_tokens:,} tokens would fit."
        return f"{said} Choose a shorter context or a smaller model."


def memory_refusal(failure: Failure) -> MemoryRefusal | None:
    """The numbers of a refusal for want of memory; None for other failures, or without numbers."""
    found = {name: _count(failure.numbers, name) for name in REFUSAL_NUMBERS}
    needed, free = found["needed_bytes"], found["free_bytes"]
    if failure.code != MEMORY_REFUSED or needed is None or free is None:
        return None
    pool = failure.numbers.get("pool")
    return MemoryRefusal(
        needed_bytes=needed,
        free_bytes=free,
        pool=pool if isinstance(pool, str) else "",
        others_bytes=found["others_bytes"] or 0,
        fitting_context_tokens=found["fitting_context_tokens"] or 0,
    )


def _count(numbers: Numbers, name: str) -> int | None:
    value = numbers.get(name)
    return int(value) if isinstance(value, int | float) else None


def _place_of(pool: str) -> str:
    if pool == "ram":
        return " in memory"
    if pool.startswith("gpu"):
        return f" on GPU {pool.removeprefix('gpu')}".rstrip()
    return f" in {pool}" if pool else ""


SENTENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ENGINE_DIED: "The engine stopped and was restarted. Your chat is intact.",
        "device-lost": "The device failed, so the engine was started again. Your chat is intact.",
        "protocol": "The app and its engine did not understand each other, "
        "so the engine was started again.",
    }
)


def gibibytes(count: float, *, up: bool | None = None) -> str:
    """Bytes as people read memory: ``13.1 GiB``, below one GiB ``98 MiB``.

    Args:
        up: None rounds to the nearest. Where two sizes are compared, what is needed is rounded up
            and what is free down, so that what does not fit never looks as if it did.
    """
    unit, digits, name = (2**30, 1, "GiB") if count >= 2**30 else (2**20, 0, "MiB")
    scaled = count / unit * 10**digits
    if up is None:
        return f"{count / unit:.{digits}f} {name}"
    whole = math.ceil(scaled) if up else math.floor(scaled)
    return f"{whole / 10**digits:.{digits}f} {name}"
