"""The settings: a typed record, and the TOML file that keeps it.

A key that this version does not know is kept as it is and named in a notice: a newer version's
settings survive an older one, and a slip of the pen is seen. A file that is no settings at all is
left as it is, its reason told, and copied aside before the first save overwrites it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from app.directories import make_private
from app.errors import SettingsInvalid
from app.files import write_atomically
from app.link.events import LoadWish
from engine.protocol import Sampling

Table = dict[str, Any]
Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]


class SamplingSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How replies are drawn unless a chat says otherwise; None is the checkpoint's own advice."""

    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0)] | None = None
    top_p: Unit | None = None
    min_p: Unit | None = None
    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def to_sampling(self) -> Sampling:
        """As the engine is asked."""
        return Sampling(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            seed=self.seed,
            max_tokens=self.max_tokens,
        )


class WindowSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the window was; sizes in device-independent pixels, None where the system decides."""

    x: int | None = None
    y: int | None = None
    width: Annotated[int, msgspec.Meta(ge=100)] | None = None
    height: Annotated[int, msgspec.Meta(ge=100)] | None = None
    maximized: bool = False
    sidebar_width: Annotated[int, msgspec.Meta(ge=0)] | None = None
    sidebar_shown: bool = True
    conversation: int | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a person can set.

    Attributes:
        default_model: path or name of the checkpoint that is loaded at start.
        model_folders: folders besides the app's own in which checkpoints are looked for.
        theme: light, dark, or as the system is.
        text_scale: size of all text, 1 is the system's.
        states_quota_gb: most GB of kept prompt states on disk, 0 keeps none there; None takes 20,
            or a tenth of the free disk where that is less.
        allow_8bit_kv: whether K and V may be kept in 8 bits where memory is short.
    """

    default_model: str | None = None
    model_folders: tuple[str, ...] = ()
    theme: Literal["system", "light", "dark"] = "system"
    text_scale: Annotated[float, msgspec.Meta(ge=0.5, le=3)] = 1.0
    states_quota_gb: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None = None
    allow_8bit_kv: bool = False
    sampling: SamplingSettings = SamplingSettings()
    window: WindowSettings = WindowSettings()

    def to_wish(self) -> LoadWish:
        """How a checkpoint is loaded unless a person asks for another way."""
        return LoadWish(kv="full-or-fp8" if self.allow_8bit_kv else "full")

    @property
    def states_quota_bytes(self) -> int | None:
        """The quota of kept states, None for the engine's choice."""
        return None if self.states_quota_gb is None else round(self.states_quota_gb * 1e9)

    def engine_arguments(self) -> tuple[str, ...]:
        """What is added to the command that starts the engine."""
        quota = self.states_quota_bytes
        return () if quota is None else ("--state-quota-bytes", str(quota))


class SettingsFile:
    """The file that keeps the settings. Used from one thread.

    Attributes:
        settings: as they were read or saved last.
        notices: what a person should know of the reading, one sentence each.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; without one, or with one that is no settings, defaults hold."""
        self._path = path
        self._unknown: Table = {}
        self._unreadable = False
        self.settings = Settings()
        self.notices: tuple[str, ...] = ()
        try:
            self._read()
        except SettingsInvalid as error:
            self._unreadable = True
            self.notices = (error.sentence,)

    def save(self, settings: Settings) -> None:
        """Write the settings and what was not understood; raises SettingsInvalid."""
        known = msgspec.to_builtins(settings)
        try:
            make_private(self._path.parent)
            if self._unreadable:
                aside = self._path.with_name(f"{self._path.name}.unreadable")
                write_atomically(aside, self._path.read_bytes())
                self._unreadable = False
            write_atomically(self._path, to_toml(_merged(known, self._unknown)).encode("utf-8"))
        except OSError as error:
            raise SettingsInvalid(
                f"The settings cannot be written to {self._path}: {error.strerror or error}."
            ) from error
        self.settings = settings

    def _read(self) -> None:
        try:
            table = tomllib.loads(self._path.read_bytes().decode("utf-8"))
            known, self._unknown = _split(table, Settings)
            self.settings = msgspec.convert(known, Settings)
        except FileNotFoundError:
            return
        except (OSError, ValueError, msgspec.ValidationError) as error:
            raise SettingsInvalid(
                f"The settings in {self._path} are not used, defaults are: {error}."
            ) from error
        names = ", ".join(_names(self._unknown))
        if names:
            self.notices = (f"The settings in {self._path} have unknown names: {names}.",)


def to_toml(table: Mapping[str, Any]) -> str:
    """A table as TOML: plain values first, then sub-tables; None is left out."""
    return "\n".join(_lines(table, ())) + "\n"


def _lines(table: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[str]:
    plain = {k: v for k, v in table.items() if not isinstance(v, Mapping) and v is not None}
    if place and plain:
        yield ""
        yield f"[{'.'.join(map(_key, place))}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _lines(value, (*place, key))


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if bare else _text(key)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case int() | float():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
        case _:
            return str(value)  # dates and times of TOML, which only a kept key can have


def _text(text: str) -> str:
    # TOML's basic strings are JSON's, save that DEL must be escaped too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _split(table: Table, kind: type[msgspec.Struct]) -> tuple[Table, Table]:
    known: Table = {}
    unknown: Table = {}
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in table.items():
        inner = fields.get(key)
        if inner is None:
            unknown[key] = value
        elif isinstance(inner, type) and issubclass(inner, msgspec.Struct) and type(value) is dict:
            known[key], rest = _split(value, inner)
            if rest:
                unknown[key] = rest
        else:
            known[key] = value
    return known, unknown


def _merged(known: Table, unknown: Table) -> Table:
    merged = dict(known)
    for key, value in unknown.items():
        there = merged.get(key)
        if isinstance(there, dict) and isinstance(value, dict):
            merged[key] = {**there, **value}
        else:
            merged[key] = value
    return merged


def _names(table: Table, place: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _names(value, f"{place}{key}.")
        else:
            yield place + key
