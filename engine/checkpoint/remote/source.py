"""A checkpoint on the hub, opened by its headers: enough for a plan, nothing to compute with.

Owns the shadow's mappings. The few small tensors that a family reads while its spec is made are
fetched when they are asked for; weights are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.remote.listing import Chosen, Listing, choose, listing_of
from engine.checkpoint.remote.names import HubName
from engine.checkpoint.remote.shadow import (
    fill,
    forget_old,
    gguf_header,
    safetensors_header,
    write_shadow,
)
from engine.checkpoint.remote.transport import Hub
from engine.checkpoint.source import (
    CheckpointSource,
    Dialect,
    GenerationDefaults,
    MetadataValue,
    TensorFacts,
    TokenizerFacts,
)
from engine.errors import HubUnavailable
from engine.owner import Owner

TENSOR_LIMIT: Final = 1 << 20
WHOLE_LIMIT: Final = 64 << 20


def open_remote(hub: Hub, name: HubName, folder: Path) -> CheckpointSource:
    """Open a model on the hub by its headers.

    Args:
        folder: where shadows are kept; those of a revision that was read before are used again.

    Raises:
        CheckpointError: offline, missing, gated, or no sound checkpoint.
    """
    listing = listing_of(hub.repository(name.repository), name.repository)
    chosen = choose(listing, name)
    place = folder / f"{name.repository.replace('/', '--')}--{listing.revision}"
    fetch = _Fetch(hub, name.repository, listing, place)
    for file in chosen.whole:
        fetch.whole(file)
    for file in chosen.weights:
        fetch.header(file)
    forget_old(folder, place)
    opened = place if chosen.whole else fetch.path(chosen.weights[0])
    return RemoteSource(open_checkpoint(opened), fetch, chosen)


class RemoteSource(Owner):
    """``CheckpointSource`` over the shadow of a checkpoint on the hub."""

    def __init__(self, shadow: CheckpointSource, fetch: _Fetch, chosen: Chosen) -> None:
        """Take over an open shadow."""
        self._shadow = shadow
        self._fetch = fetch
        self._remote = {fetch.path(file): file for file in chosen.weights}

    @property
    def files(self) -> tuple[Path, ...]:
        """The shadow's files."""
        return self._shadow.files

    @property
    def name(self) -> str:
        """What to call the model."""
        return self._shadow.name

    @property
    def architecture(self) -> str:
        """The family key."""
        return self._shadow.architecture

    @property
    def dialect(self) -> Dialect:
        """Whose names and keys these are."""
        return self._shadow.dialect

    @property
    def metadata(self) -> Mapping[str, MetadataValue]:
        """Key to value."""
        return self._shadow.metadata

    @property
    def tensors(self) -> Mapping[str, TensorFacts]:
        """Name to facts."""
        return self._shadow.tensors

    @property
    def tokenizer(self) -> TokenizerFacts:
        """Tokenizer data; of a published checkpoint it was not fetched."""
        return self._shadow.tokenizer

    @property
    def chat_template(self) -> str | None:
        """Jinja source, where it is part of what was fetched."""
        return self._shadow.chat_template

    @property
    def generation_defaults(self) -> GenerationDefaults:
        """Recommended sampling, where it is part of what was fetched."""
        return self._shadow.generation_defaults

    @property
    def header_digest(self) -> str:
        """The same as of the whole files."""
        return self._shadow.header_digest

    def tensor_bytes(self, name: str) -> memoryview:
        """A small tensor's bytes, fetched; raises HubUnavailable for one of more than 1 MiB."""
        facts = self.tensors[name]
        if facts.size_bytes > TENSOR_LIMIT:
            raise HubUnavailable(f"The weights of {self.name} are not here, only their header.")
        path = self.files[facts.file]
        content = self._fetch.part(self._remote[path], facts.offset, facts.size_bytes)
        fill(path, facts.offset, content)
        return self._shadow.tensor_bytes(name)

    def close(self) -> None:
        """Unmap the shadow; it stays for the next time."""
        self._shadow.close()


class _Fetch:
    """Files of one revision of a repository into one folder, each once."""

    def __init__(self, hub: Hub, repository: str, listing: Listing, folder: Path) -> None:
        self._hub = hub
        self._repository = repository
        self._listing = listing
        self._folder = folder

    def part(self, file: str, start: int, size: int) -> bytes:
        """Bytes of a file, exactly; raises HubUnavailable where it is not as long as was listed."""
        total = self._listing.files[file]
        piece = self._hub.piece(self._repository, self._listing.revision, file, start, size)
        if piece.total_bytes != total:
            raise HubUnavailable(
                f"{file} has {piece.total_bytes:,} bytes, but the hub lists it with {total:,}."
            )
        if len(piece.content) != size:
            raise HubUnavailable(
                f"The hub gave {len(piece.content):,} bytes of {size:,} of {file}."
            )
        return piece.content

    def header(self, file: str) -> None:
        """Make the shadow of a file of weights, unless it is there."""
        path, size = self.path(file), self._listing.files[file]
        if not _is_there(path, size):
            read = partial(self.part, file)
            make = gguf_header if file.lower().endswith(".gguf") else safetensors_header
            if not size:
                raise HubUnavailable(f"{file} is empty on the hub.")
            write_shadow(path, make(read, size, path.name), size)

    def whole(self, file: str) -> None:
        """Fetch a small file, unless it is there."""
        path, size = self.path(file), self._listing.files[file]
        if not 0 < size <= WHOLE_LIMIT:
            raise HubUnavailable(f"{file} has {size:,} bytes; at most {WHOLE_LIMIT:,} are read.")
        if not _is_there(path, size):
            write_shadow(path, self.part(file, 0, size), size)

    def path(self, file: str) -> Path:
        """Where a file's shadow lies; its name was judged when it was listed."""
        return self._folder.joinpath(*file.split("/"))


def _is_there(path: Path, size_bytes: int) -> bool:
    return path.is_file() and path.stat().st_size == size_bytes
