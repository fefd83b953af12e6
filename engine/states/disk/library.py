"""The folder of all kept states, of every model: ``<data>/states``.

Owns the worker's thread. Reads nothing before something is asked; used from the engine's thread.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from engine.errors import InvariantBroken
from engine.owner import Owner
from engine.protocol import StateFacts
from engine.states.border import ModelIdentity, StateArchive, Usage
from engine.states.disk.archive import FLUSH_S, DiskArchive
from engine.states.disk.catalogue import Catalogue, Kept, Shelf
from engine.states.disk.facts import shared_bytes, state_facts
from engine.states.disk.host import STAGED_EXTENTS, HostMemory
from engine.states.disk.keeping import Keeping
from engine.states.disk.stored.files import DiskFiles, Files
from engine.states.records import DIGEST_BYTES

FOLDER: Final = "states"
ANSWER_S: Final = 5.0
"""How long an answer about all models may take; then it tells what is known so far."""

HURRY_S: Final = 2.0


class DiskLibrary(Owner):
    """Implements ``engine.states.border.StateLibrary``."""

    def __init__(
        self,
        data_directory: Path,
        quota_bytes: int | None = None,
        *,
        files: Files | None = None,
        clock: Callable[[], float] = time.time,
        flush_s: float = FLUSH_S,
    ) -> None:
        """Begin with nothing read; ``quota_bytes`` None takes the default of ``eviction``."""
        self._root = data_directory / FOLDER
        self._catalogue = Catalogue()
        self._keeping = Keeping(
            self._root, self._catalogue, files or DiskFiles(), quota_bytes, clock
        )
        self._clock = clock
        self._flush_s = flush_s
        self._archive: DiskArchive | None = None
        self._host: HostMemory | None = None

    def open(self, identity: ModelIdentity, probe: bytes, host_bytes: int) -> StateArchive:
        """See the border."""
        largest = max(identity.extent_bytes.values())
        if host_bytes < STAGED_EXTENTS * largest:
            raise InvariantBroken(f"{host_bytes} bytes cannot hold two extents of {largest}.")
        if self._catalogue.opened is not None:
            raise InvariantBroken("The states of two models cannot be open at once.")
        host = HostMemory(host_bytes, largest)
        name = identity_name(identity)
        with self._catalogue.lock:
            shelf = self._catalogue.shelves.setdefault(name, Shelf(name))
            shelf.model, shelf.can_cut = identity.model, identity.can_cut
            shelf.extent_bytes = dict(identity.extent_bytes)
            shelf.forgotten = host.forget
            shelf.adopted.clear()
            self._catalogue.opened = shelf
        self._host = host
        adopt = partial(self._keeping.shelving.adopt, shelf, identity, probe)
        self._keeping.worker.add_first(adopt)
        self._keeping.worker.add(self._keeping.fit)
        self._archive = DiskArchive(
            shelf,
            self._catalogue,
            self._keeping,
            host,
            clock=self._clock,
            flush_s=self._flush_s,
        )
        return self._archive

    def set_open(self, conversations: Iterable[str]) -> None:
        """See the border."""
        self._catalogue.open_conversations = frozenset(conversations)

    def sweep(self, known: Iterable[str]) -> None:
        """See the border."""
        self._keeping.worker.add(partial(self._sweep, frozenset(known)))

    def pin(self, conversation: str, *, pinned: bool) -> None:
        """See the border."""
        self._ask(partial(self._pin, conversation, pinned=pinned))

    def clear(self, conversations: Iterable[str] | None) -> None:
        """See the border."""
        gone = None if conversations is None else frozenset(conversations)
        self._ask(partial(self._clear, gone))

    def facts(self) -> tuple[StateFacts, ...]:
        """See the border."""
        self._ask(self._keeping.shelving.load_all)
        with self._catalogue.lock:
            return state_facts(self._catalogue, self._host or ())

    def usage(self) -> Usage:
        """See the border."""
        self._ask(self._keeping.shelving.load_all)
        quota, free = self._keeping.quota()
        with self._catalogue.lock:
            return Usage(self._catalogue.disk_bytes, quota, free, shared_bytes(self._catalogue))

    def close(self) -> None:
        """Close the archive, do what waits for as long as the limit, and end the thread."""
        if self._archive is not None:
            self._archive.close()
        self._keeping.worker.flush(self._flush_s)
        self._keeping.worker.close()

    def hurry(self) -> None:
        """The app is gone: from now on closing takes ``HURRY_S`` at most; from any thread."""
        self._keeping.worker.hurry(HURRY_S)

    def _ask(self, job: Callable[[], None]) -> None:
        """Have it done before anything else that waits, and wait for it; it is done in any case."""
        opened, worker = self._catalogue.opened, self._keeping.worker
        if opened is None or opened.adopted.wait(ANSWER_S):
            worker.call(job, ANSWER_S)
        else:
            worker.add(job)

    def _pin(self, conversation: str, *, pinned: bool) -> None:
        self._keeping.shelving.load_all()
        with self._catalogue.lock:
            for shelf, kept in self._catalogue.all():
                if conversation in kept.conversations:
                    wanted = kept.pinned_by - {conversation}
                    kept.pinned_by = wanted | {conversation} if pinned else wanted
                    shelf.change(kept)
        self._keeping.write_changed()

    def _sweep(self, known: frozenset[str]) -> None:
        self._keeping.shelving.load_all()
        self._let_go(lambda conversation: conversation not in known, shared=False)

    def _clear(self, gone: frozenset[str] | None) -> None:
        self._keeping.shelving.load_all()
        self._let_go(lambda each: gone is None or each in gone, shared=gone is None)

    def _let_go(self, goes: Callable[[str], bool], *, shared: bool) -> None:
        """Take states from conversations, and delete those that then belong to none.

        Args:
            shared: delete those too that never belonged to one.
        """
        for shelf in tuple(self._catalogue.shelves.values()):
            with self._catalogue.lock:
                gone = [kept for kept in shelf.states.values() if _loses(kept, goes, shared=shared)]
                for kept in gone:
                    kept.doomed = True
                read = tuple(kept.key for kept in gone if kept.readers)
                removed = shelf.remove(kept.key for kept in gone if not kept.readers)
                shelf.revision += 1
            self._keeping.delete_now(removed, read)
        self._keeping.write_changed()


def identity_name(identity: ModelIdentity) -> str:
    """The name of an identity's folder: a digest of everything that decides a state's bytes."""
    sizes = sorted(identity.extent_bytes.items())
    said = msgspec.json.encode((sorted(identity.facts), sizes, identity.can_cut))
    return hashlib.blake2b(said, digest_size=DIGEST_BYTES).hexdigest()


def _loses(kept: Kept, goes: Callable[[str], bool], *, shared: bool) -> bool:
    """Take conversations from a state; whether it then belongs to none."""
    left = {each for each in kept.conversations if not goes(each)}
    if left != kept.conversations:
        kept.conversations = left
        kept.pinned_by &= left
        kept.record = replace(kept.record, conversation=min(left, default=None))
        kept.changed = True
        return not left
    return not left and shared
