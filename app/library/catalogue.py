"""Which checkpoints there are and which one a name means. Pure: it is given what was found.

A checkpoint is known by its file's name. A name finds it when it is that name, with or without the
ending, in any case of letters; else when it is part of exactly one.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.errors import ModelUnknown

ENDING: Final = ".gguf"


@dataclass(frozen=True, slots=True)
class Starter:
    """The checkpoint that set-up fetches, so that the first start can answer."""

    title: str
    file_name: str
    sha256: str
    file_bytes: int
    licence: str


STARTER: Final = Starter(
    title="SmolLM2 135M Instruct",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    file_bytes=98_362_432,
    licence="Apache-2.0",
)


@dataclass(frozen=True, slots=True)
class Installed:
    """One checkpoint on this machine.

    Attributes:
        path: its file, of a split one the first part, or its folder as it was published.
        file_bytes: of all files with weights.
        present: whether it was there at the last look; one that was there before keeps its line.
    """

    path: Path
    file_bytes: int
    present: bool = True

    @property
    def name(self) -> str:
        """What it is called and found by.

        A folder of the hub's cache is called by a number; the repository's name is further up.
        """
        if self.path.parent.name == "snapshots":
            return self.path.parents[1].name.rpartition("--")[2]
        return self.path.name.removesuffix(ENDING)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The installed checkpoints, in order of their names."""

    installed: tuple[Installed, ...]

    def find(self, name: str) -> Installed:
        """The checkpoint that ``name`` means; raises ModelUnknown for none, several or one away."""
        wanted = name.casefold().removesuffix(ENDING)
        exact = [entry for entry in self.installed if entry.name.casefold() == wanted]
        part = [entry for entry in self.installed if wanted in entry.name.casefold()]
        found = (exact or part) if wanted else []
        if len(found) > 1:
            raise ModelUnknown(
                f"The name {name!r} means several models: {_listed(found)}. Give more of it."
            )
        if not found:
            raise ModelUnknown(self._unknown(name))
        return _there(found[0])

    def default(self, wanted: str | None = None) -> Installed:
        """What is used when nothing is named: the chosen one, the starter, or the first.

        Raises:
            ModelUnknown: none is installed, or ``wanted`` is not.
        """
        if wanted is not None:
            by_path = [entry for entry in self.installed if str(entry.path) == wanted]
            return _there(by_path[0]) if by_path else self.find(wanted)
        present = [entry for entry in self.installed if entry.present]
        for entry in present:
            if entry.path.name == STARTER.file_name:
                return entry
        if not present:
            raise ModelUnknown(self._none_installed())
        return present[0]

    def _unknown(self, name: str) -> str:
        if not self.installed:
            return self._none_installed()
        names = {entry.name.casefold(): entry for entry in self.installed}
        near = difflib.get_close_matches(name.casefold(), names, n=3, cutoff=0.4)
        if near:
            return f"No model is called {name!r}; near: {_listed([names[n] for n in near])}."
        return f"No model is called {name!r}; installed: {_listed(self.installed[:5])}."

    def _none_installed(self) -> str:
        return (
            "No model is installed; set-up fetches a small one "
            "(python3 installer/bootstrap.py run), or name a file with --model."
        )


def _there(entry: Installed) -> Installed:
    if not entry.present:
        raise ModelUnknown(f"The model {entry.name} is not there now: {entry.path}.")
    return entry


def _listed(entries: Sequence[Installed]) -> str:
    alike = len({entry.name for entry in entries}) < len(entries)
    return ", ".join(str(entry.path) if alike else entry.name for entry in entries)
