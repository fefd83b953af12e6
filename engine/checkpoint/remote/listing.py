"""What a repository on the hub holds, and which of its files are the model that was named.

Pure: judges the hub's answer and chooses. Names that could lead anywhere else are not listed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeGuard

from engine.checkpoint.gguf.split import part_number
from engine.checkpoint.labels import plain
from engine.checkpoint.published.config import CONFIG
from engine.checkpoint.published.shards import ENDING, INDEX
from engine.checkpoint.remote.names import HubName, is_safe
from engine.errors import HubUnavailable

GGUF: Final = ".gguf"
USUAL: Final = "Q4_K_M"
FILE_LIMIT: Final = 20_000
SIZE_LIMIT: Final = 1 << 46
SHOWN: Final = 12
_REVISION: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NO_MODEL: Final = re.compile(r"mmproj|imatrix|(^|[-_.])mtp-", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Listing:
    """A repository at one revision: path to size, plain names only."""

    revision: str
    files: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The files of one model, in order.

    Attributes:
        weights: of which the headers are needed.
        whole: small files that are needed as they are.
    """

    weights: tuple[str, ...]
    whole: tuple[str, ...] = ()


def listing_of(answer: Any, repository: str) -> Listing:
    """Judge the hub's answer; raises HubUnavailable where it makes no sense."""
    revision = answer.get("sha") if isinstance(answer, dict) else None
    entries = answer.get("siblings") if isinstance(answer, dict) else None
    if (
        not isinstance(revision, str)
        or _REVISION.fullmatch(revision) is None
        or not isinstance(entries, list)
        or len(entries) > FILE_LIMIT
    ):
        raise HubUnavailable(f"The hub's answer about {repository} makes no sense.")
    files: dict[str, int] = {}
    for entry in entries:
        name = entry.get("rfilename") if isinstance(entry, dict) else None
        size = entry.get("size") if isinstance(entry, dict) else None
        if isinstance(name, str) and is_safe(name) and _is_size(size):
            files[name] = size
    return Listing(revision, files)


def choose(listing: Listing, name: HubName) -> Chosen:
    """The files of the model that was named.

    Raises:
        HubUnavailable: there is none, or several; the sentence names some.
    """
    models = _gguf_models(listing)
    if name.file is not None:
        for files in models.values():
            if name.file in files:
                return Chosen(files)
        if name.file in listing.files:
            return Chosen((name.file,))
        raise HubUnavailable(f"{name.repository} has no file {plain(name.file)}. {_names(models)}")
    if name.quantization is not None:
        return Chosen(_quantized(models, name, name.quantization))
    if CONFIG in listing.files:
        shards = _shards(listing)
        if shards:
            whole = (CONFIG, *([INDEX] if INDEX in listing.files else []))
            return Chosen(shards, whole)
    if len(models) == 1:
        return Chosen(*models.values())
    usual = [key for key in models if _has_word(key, USUAL)]
    if len(usual) == 1:
        return Chosen(models[usual[0]])
    raise HubUnavailable(f"{name.repository} does not say which model is meant. {_names(models)}")


def _gguf_models(listing: Listing) -> dict[str, tuple[str, ...]]:
    """The models of a repository by name; the parts of a split one in order."""
    found: dict[str, list[str]] = {}
    for file in sorted(listing.files):
        path = PurePosixPath(file)
        if path.suffix.lower() != GGUF or _NO_MODEL.search(path.name):
            continue
        part = part_number(Path(path.name))
        stem = path.name[: -len(GGUF)] if part is None else part[0]
        found.setdefault(str(path.with_name(stem)), []).append(file)
    return {stem: tuple(files) for stem, files in found.items()}


def _quantized(
    models: Mapping[str, Sequence[str]], name: HubName, quantization: str
) -> tuple[str, ...]:
    fitting = [stem for stem in models if _has_word(stem, quantization)]
    if len(fitting) > 1:
        # "UD-Q4_K_XL" holds "Q4_K_XL" too: the plainest name is the one that was meant.
        fitting = [min(fitting, key=lambda stem: (len(stem), stem))]
    if not fitting:
        raise HubUnavailable(
            f"{name.repository} has no GGUF file of {quantization}. {_names(models)}"
        )
    return tuple(models[fitting[0]])


def _has_word(stem: str, word: str) -> bool:
    """Whether a name has a word that no letter or digit touches."""
    pattern = rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9_])"
    return re.search(pattern, PurePosixPath(stem).name, re.IGNORECASE) is not None


def _shards(listing: Listing) -> tuple[str, ...]:
    """The weights beside the config; where some begin with "model" the others are no part."""
    found = sorted(name for name in listing.files if "/" not in name and name.endswith(ENDING))
    return tuple([name for name in found if name.startswith("model")] or found)


def _names(models: Mapping[str, Sequence[str]]) -> str:
    if not models:
        return "It has no model that Hearth can read."
    names = [PurePosixPath(stem).name for stem in models]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"It has {', '.join(names[:SHOWN])}{more}."


def _is_size(size: object) -> TypeGuard[int]:
    return isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= SIZE_LIMIT
