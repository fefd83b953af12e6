"""A file system in memory that loses power, fails and is slow to order.

Names and contents last only once they were synced; a loss of power keeps of everything else what
its dice say: a name given or not, a content as last synced, cut, garbled or whole.
"""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from engine.states.disk.stored.files import Entry, NewFile, OldFile

PLENTY = 10**15


@dataclass(eq=False)
class Inode:
    """One file's bytes as they are, and as they were last synced."""

    content: bytearray = field(default_factory=bytearray)
    synced: bytes = b""


@dataclass(eq=False)
class Names:
    """One folder: names now, and those that last."""

    now: dict[str, Inode | Names] = field(default_factory=dict)
    synced: dict[str, Inode | Names] = field(default_factory=dict)


class _Open:
    def __init__(self, files: FakeFiles, inode: Inode) -> None:
        self._files = files
        self._inode = inode
        files.open_files += 1
        self._closed = False

    @property
    def size_bytes(self) -> int:
        return len(self._inode.content)

    def write(self, content: memoryview) -> int:
        count = self._files.piece(len(content))
        self._files.step(f"write {count}")
        self._inode.content += content[:count]
        self._files.written_bytes += count
        return count

    def sync(self) -> None:
        self._files.step("sync")
        if not self._files.lies:
            self._inode.synced = bytes(self._inode.content)

    def read_at(self, offset: int, into: memoryview) -> int:
        self._files.step("read")
        found = self._inode.content[offset : offset + self._files.piece(len(into))]
        into[: len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._files.open_files -= 1


class FakeFiles:
    """Implements ``engine.states.disk.stored.files.Files``.

    Attributes:
        steps: operations so far; the one numbered ``fail_at`` raises ``error``, as do all from
            ``off_at`` on: the power is off. ``log`` has their names.
        dice: where set, reads and writes are cut short; ``stuck`` cuts them to nothing.
        room: bytes of the whole disk.
        lies: whether what is synced lasts no longer than what is not.
        before: called before each operation, as to make it slow.
    """

    def __init__(self, root: Names | None = None) -> None:
        self.root = root or _with_data()
        self.steps = self.written_bytes = self.open_files = 0
        self.log: list[str] = []
        self.fail_at: Callable[[int, str], bool] = lambda _step, _name: False
        self.off_at = PLENTY
        self.error = errno.EIO
        self.room = PLENTY
        self.lies = self.stuck = False
        self.dice: random.Random | None = None
        self.before: Callable[[str], None] = lambda _name: None
        self._lock = threading.Lock()

    def step(self, name: str) -> None:
        """Count one operation, and fail where it is to fail."""
        self.before(name)
        with self._lock:
            number = self.steps
            self.steps += 1
            self.log.append(name)
        if number >= self.off_at or self.fail_at(number, name):
            raise OSError(self.error, "told to fail")

    def piece(self, size: int) -> int:
        """How much of a read or a write is done at once."""
        if self.stuck:
            return 0
        return size if self.dice is None or size < 2 else self.dice.randint(1, size)

    def make_folder(self, folder: Path) -> None:
        self.step("make_folder")
        names = self.root
        for part in folder.parts:
            inner = names.now.setdefault(part, Names())
            assert isinstance(inner, Names)
            names = inner

    def entries(self, folder: Path) -> Sequence[Entry]:
        self.step("entries")
        names = self._find(folder)
        if not isinstance(names, Names):
            return ()
        return [
            Entry(
                name, isinstance(each, Names), 0 if isinstance(each, Names) else len(each.content)
            )
            for name, each in names.now.items()
        ]

    def create(self, path: Path) -> NewFile:
        self.step("create")
        folder = self._folder(path)
        if path.name in folder.now:
            raise FileExistsError(errno.EEXIST, "is there")
        inode = Inode()
        folder.now[path.name] = inode
        return _Open(self, inode)

    def open(self, path: Path) -> OldFile:
        self.step("open")
        found = self._find(path)
        if not isinstance(found, Inode):
            raise FileNotFoundError(errno.ENOENT, "not there")
        return _Open(self, found)

    def rename(self, source: Path, target: Path) -> None:
        self.step(f"rename {target.name}")
        self._folder(target).now[target.name] = self._folder(source).now.pop(source.name)

    def remove(self, path: Path) -> None:
        self.step("remove")
        folder = self._find(path.parent)
        if isinstance(folder, Names):
            folder.now.pop(path.name, None)

    def remove_folder(self, folder: Path) -> None:
        self.step("remove_folder")
        found = self._find(folder)
        if not isinstance(found, Names) or found.now:
            raise OSError(errno.ENOTEMPTY, "not empty")
        del self._folder(folder).now[folder.name]

    def sync_folder(self, folder: Path) -> None:
        self.step("sync_folder")
        found = self._find(folder)
        if not isinstance(found, Names):
            raise FileNotFoundError(errno.ENOENT, "not there")
        if not self.lies:
            found.synced = dict(found.now)

    def free_bytes(self, folder: Path) -> int:  # noqa: ARG002 - of any folder
        self.step("free_bytes")
        return max(0, self.room - sum(len(inode.content) for inode in self.paths().values()))

    def paths(self) -> dict[PurePath, Inode]:
        """Every file."""
        found: dict[PurePath, Inode] = {}
        _walk(self.root, PurePath(), found)
        return found

    def after_power_loss(self, dice: random.Random | None = None) -> FakeFiles:
        """What the next start finds; without dice everything that was not synced is gone."""
        return FakeFiles(_survivors(self.root, dice, {}))

    def _folder(self, path: Path) -> Names:
        found = self._find(path.parent)
        if not isinstance(found, Names):
            raise FileNotFoundError(errno.ENOENT, "no such folder")
        return found

    def _find(self, path: Path) -> Inode | Names | None:
        found: Inode | Names | None = self.root
        for part in path.parts:
            found = found.now.get(part) if isinstance(found, Names) else None
        return found


def _with_data() -> Names:
    """A root with the data directory, which the app makes and which lasts."""
    made: Names = Names()
    top, data = Names(), Names()
    top.now["data"] = data
    top.synced["data"] = data
    made.now["/"] = top
    made.synced["/"] = top
    return made


def _walk(names: Names, at: PurePath, found: dict[PurePath, Inode]) -> None:
    for name, each in names.now.items():
        if isinstance(each, Names):
            _walk(each, at / name, found)
        else:
            found[at / name] = each


def _survivors(names: Names, dice: random.Random | None, made: dict[int, Inode]) -> Names:
    kept = dict(names.synced)
    if dice is not None:
        for name in {*names.now, *names.synced}:
            if names.now.get(name) is not names.synced.get(name) and dice.random() < 0.5:
                now = names.now.get(name)
                kept.pop(name, None)
                if now is not None:
                    kept[name] = now
    found = Names()
    for name, each in kept.items():
        if isinstance(each, Names):
            found.now[name] = _survivors(each, dice, made)
        else:
            found.now[name] = made.setdefault(id(each), _remains(each, dice))
    found.synced = dict(found.now)
    return found


def _remains(inode: Inode, dice: random.Random | None) -> Inode:
    content = inode.synced
    if dice is not None and content != bytes(inode.content):
        choice = dice.randrange(4)
        whole = bytes(inode.content)
        if choice == 1:
            content = whole[: dice.randrange(len(whole) + 1)]
        elif choice == 2:
            content = bytes(len(whole))
        elif choice == 3:
            content = whole
    return Inode(bytearray(content), content)
