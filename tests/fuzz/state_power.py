"""Loss of power and failing calls at every file operation of an engine's life, in turn.

By hand: ``python -m tests.fuzz.state_power [ROLLS]``. After each, the next start finds states that
read back equal or none, and after a sweep no other file. Also the other way: a disk that fails from
some operation on must not cost what was there before.
"""

from __future__ import annotations

import errno
import random
import sys

from engine.states.disk.library import DiskLibrary
from engine.states.records import StateRecord
from tests.helpers.disk_states import (
    DATA,
    HYBRID,
    PROBE,
    expected,
    find,
    keep,
    read,
    record,
    tokens,
)
from tests.helpers.fake_files import FakeFiles

HOST = 40_000
STATES = (
    record(tokens(320), "a", identity=HYBRID),
    record(tokens(704), "a", identity=HYBRID),
    record(tokens(704, branch_at=448), "b", identity=HYBRID),
)


def live(files: FakeFiles, *, flush_s: float = 5.0) -> None:
    """A life of an engine: two states, a pin, another life with a third, one cleared."""
    with DiskLibrary(DATA, files=files, flush_s=flush_s) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        for state in STATES[:2]:
            keep(archive, state, HYBRID)
        library.pin("a", pinned=True)
    with DiskLibrary(DATA, files=files, flush_s=flush_s) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        keep(archive, STATES[2], HYBRID)
        library.clear(["a"])


def count_steps() -> int:
    files = FakeFiles()
    live(files)
    return files.steps


def survivors(files: FakeFiles) -> list[StateRecord]:
    """Open what is left, read every state of it, sweep; nothing may be wrong or left over."""
    found = []
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        for state in STATES:
            known = find(archive, state.ids)
            if known is not None and known.key == state.key:
                content = read(archive, known)
                assert content in (None, expected(state, HYBRID))
                found += [state] if content is not None else []
        keep(archive, STATES[0], HYBRID)
        library.sweep(["a", "b"])
    assert_nothing_over(files)
    return found


def assert_nothing_over(files: FakeFiles) -> None:
    """Each file is an identity, a state that is whole, or an extent of one."""
    names = {path.name for path in files.paths()}
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        kept = [state for state in STATES if archive.tier(state) != "none"]
        assert archive.tier(STATES[0]) == "disk"
        assert read(archive, STATES[0]) == expected(STATES[0], HYBRID)
        assert archive.census().states == len(kept)
    wanted = {"identity.state"} | {f"{state.key.hex()}.state" for state in kept}
    for state in kept:
        wanted |= {f"{name.digest.hex()}.{name.part}" for name in state.extents}
    assert names == wanted
    assert files.open_files == 0


def lose_power(at: int, rolls: int) -> int:
    """Cut the power at one operation; returns how many states survived all that was diced."""
    files = FakeFiles()
    files.off_at = at
    live(files, flush_s=0.05)
    dice = (None, *(random.Random(f"{at} {roll}") for roll in range(rolls)))
    return sum(len(survivors(files.after_power_loss(each))) for each in dice)


def fail_once(at: int, error: int) -> int:
    """Have one operation fail; returns how many states there are afterwards."""
    files = FakeFiles()
    files.error = error
    files.fail_at = lambda number, _name: number == at
    live(files, flush_s=0.5)
    files.fail_at = lambda _step, _name: False
    return len(survivors(files))


def fail_from(step: int) -> None:
    """Have everything fail from some operation of a second life on: what was there stays."""
    files = FakeFiles()
    with DiskLibrary(DATA, files=files) as library:
        keep(library.open(HYBRID, PROBE, HOST), STATES[0], HYBRID)
    files.off_at = files.steps + step
    with DiskLibrary(DATA, files=files, flush_s=0.05) as library:
        keep(library.open(HYBRID, PROBE, HOST), STATES[2], HYBRID)
    files.off_at = FakeFiles().off_at
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        assert read(archive, STATES[0]) == expected(STATES[0], HYBRID)


def main() -> None:
    """Every operation, each in every way."""
    rolls = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    steps = count_steps()
    cuts = [lose_power(at, rolls) for at in range(steps)]
    print(f"power lost at {steps} operations, {rolls + 1} ways each: {sum(cuts)} states survived")
    for error in (errno.ENOSPC, errno.EIO):
        left = [fail_once(at, error) for at in range(steps)]
        print(
            f"{errno.errorcode[error]} at {steps} operations: {sum(left)} states kept, none wrong"
        )
    for at in range(steps):
        fail_from(at)
    print(f"dead from each of {steps} operations on: what was there stayed")


if __name__ == "__main__":
    main()
