"""The settings: a typed record, and the TOML file that keeps it.

A key that this version does not know is kept as it is and named in a notice: a newer version's
settings survive an older one, and a slip of the pen is seen. A file that is no settings at all is
left as it is, its reason told, and copied aside before the first save overwrites it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from app.directories import make_private
from app.errors import SettingsInvalid
from app.files import write_atomically
from app.settings.record import Settings
from app.settings.toml import to_toml

Table = dict[str, Any]


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
