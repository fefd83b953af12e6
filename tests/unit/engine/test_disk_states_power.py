"""Loss of power and failing calls at every file operation in turn, short reads, damaged bytes."""

from __future__ import annotations

import errno
import random
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from engine.states.border import StateArchive
from engine.states.disk.library import DiskLibrary
from tests.fuzz.state_power import (
    HOST,
    STATES,
    count_steps,
    fail_from,
    fail_once,
    lose_power,
    survivors,
)
from tests.helpers.disk_states import DATA, HYBRID, PROBE, expected, find, keep, read
from tests.helpers.fake_files import FakeFiles

STEPS = count_steps()


@pytest.mark.parametrize("step", range(0, STEPS, 9))
def test_a_loss_of_power_at_any_operation_leaves_whole_states_or_none(step: int) -> None:
    lose_power(step, rolls=2)
    lose_power(min(step + 4, STEPS - 1), rolls=0)


def test_what_was_written_whole_survives_a_loss_of_power_that_drops_all_it_can() -> None:
    files = FakeFiles()
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        for state in STATES:
            keep(archive, state, HYBRID)
    assert survivors(files.after_power_loss()) == list(STATES)


def test_a_disk_that_only_says_it_synced_loses_states_but_never_gives_wrong_ones() -> None:
    """The control: what the test above keeps is lost where fsync does nothing."""
    files = FakeFiles()
    files.lies = True
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        for state in STATES:
            keep(archive, state, HYBRID)
    assert survivors(files.after_power_loss()) == []
    for roll in range(20):
        survivors(files.after_power_loss(random.Random(roll)))


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.parametrize("step", range(0, STEPS, 11))
def test_a_call_that_fails_costs_at_most_its_state(step: int, error: int) -> None:
    fail_once(step, error)


@pytest.mark.parametrize("step", range(0, STEPS, 17))
def test_a_disk_that_fails_from_some_time_on_costs_nothing_that_was_there(step: int) -> None:
    fail_from(step)


def test_short_reads_and_writes_change_nothing() -> None:
    files = FakeFiles()
    files.dice = random.Random(3)
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        for state in STATES:
            keep(archive, state, HYBRID)
    assert survivors(files) == list(STATES)


def test_a_write_that_makes_no_way_is_a_failure() -> None:
    files = FakeFiles()
    with DiskLibrary(DATA, files=files, flush_s=0.5) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        assert find(archive, STATES[0].ids) is None
        files.stuck = True
        keep(archive, STATES[0], HYBRID)
    assert [path.name for path in files.paths()] == ["identity.state"]


def kept_files() -> FakeFiles:
    files = FakeFiles()
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        keep(archive, STATES[0], HYBRID)
    return files


def regions(content: bytes) -> list[int]:
    """Places of a file that cover each of its fields and a share of the rest."""
    near = [*range(0, min(48, len(content)), 3), *range(max(0, len(content) - 24), len(content), 5)]
    return sorted({*near, *range(0, len(content), 797), *range(4078, min(4098, len(content)), 3)})


@pytest.mark.parametrize("kind", ["manifests", "-1", "0", "1", "identity.state"])
def test_a_flipped_bit_anywhere_is_found_and_never_gives_wrong_bytes(kind: str) -> None:
    files = kept_files()
    path = next(
        p for p in files.paths() if kind in (p.parent.name, p.name, p.name.rsplit(".", 1)[-1])
    )
    whole = bytes(files.paths()[path].content)
    for place in regions(whole):
        damaged = files.after_power_loss()
        damaged.paths()[path].content[place] ^= 1 << (place % 8)
        assert outcome(damaged) in ("gone", "damaged"), place
    assert outcome(files.after_power_loss()) == "whole"


@pytest.mark.parametrize("kind", ["manifests", "-1", "0", "1", "identity.state"])
def test_a_file_that_is_cut_longer_or_empty_is_not_believed(kind: str) -> None:
    files = kept_files()
    path = next(
        p for p in files.paths() if kind in (p.parent.name, p.name, p.name.rsplit(".", 1)[-1])
    )
    whole = bytes(files.paths()[path].content)
    for content in (b"", whole[:1], whole[: len(whole) // 2], whole[:-1], whole + b"\0"):
        damaged = files.after_power_loss()
        damaged.paths()[path].content[:] = content
        assert outcome(damaged) in ("gone", "damaged"), len(content)


def outcome(files: FakeFiles) -> str:
    """What became of the one state; afterwards nothing of a damaged one may be left."""
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        known = find(archive, STATES[0].ids)
        if known is None:
            assert_only_identity(files, library, archive)
            return "gone"
        content = read(archive, known)
        if content is None:
            assert archive.census().damaged == 1 and archive.census().states == 0
            assert find(archive, STATES[0].ids) is None
            assert_only_identity(files, library, archive)
            return "damaged"
        assert content == expected(STATES[0], HYBRID)
        return "whole"


def assert_only_identity(files: FakeFiles, library: DiskLibrary, archive: StateArchive) -> None:
    archive.close()
    library.sweep([])
    library.close()
    assert {path.name for path in files.paths()} <= {"identity.state"}


def test_an_extent_in_anothers_place_is_not_taken_for_it() -> None:
    files = kept_files()
    first, second = (p for p in files.paths() if p.name.endswith(".0"))
    both = files.paths()
    both[first].content, both[second].content = both[second].content, both[first].content
    assert outcome(files) == "damaged"


def test_a_manifest_under_anothers_name_is_deleted() -> None:
    files = kept_files()
    path = next(p for p in files.paths() if p.parent.name == "manifests")
    files.rename(to_path(path), to_path(path).with_name(f"{'0' * 32}.state"))
    assert outcome(files) == "gone"


def test_strays_of_every_kind_are_swept() -> None:
    files = kept_files()
    base = to_path(next(p for p in files.paths() if p.name == "identity.state")).parent
    strays = (
        base / "1.tmp",
        base / "manifests" / "7.tmp",
        base / "manifests" / "note.txt",
        base / "manifests" / f"{'ab' * 16}.state",
        base / "extents" / "loose",
        base / "extents" / "ab" / f"{'ab' * 16}.0",
        base / "extents" / "ab" / f"{'cd' * 16}.0",
        base / "extents" / "ab" / "3.tmp",
        base.parent / ("0" * 32) / "manifests" / "x.state",
    )
    for path in strays:
        files.make_folder(path.parent)
        files.create(path).close()
    for inner in ("extents/ab/folder", "manifests/folder", "folder"):
        files.make_folder(base / inner)
    files.make_folder(base.parent / "not ours")
    files.create(base.parent / "not ours" / "a file").close()
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        library.sweep(["a"])
        assert read(archive, STATES[0]) == expected(STATES[0], HYBRID)
    left = {to_path(path) for path in files.paths()}
    assert not left & set(strays)
    assert base.parent / "not ours" / "a file" in left
    assert len(left) == 3 + len(STATES[0].extents)


def test_a_state_dropped_while_it_is_written_does_not_come_back() -> None:
    files = FakeFiles()
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)

        def drop(name: str) -> None:
            if name.startswith("rename") and name.endswith(f"{STATES[0].key.hex()}.state"):
                archive.drop(STATES[0].key)

        files.before = drop
        keep(archive, STATES[0], HYBRID)
    assert [path.name for path in files.paths()] == ["identity.state"]


@pytest.mark.parametrize("how", ["cut", "longer", "ends early"])
def test_a_file_that_changed_under_an_open_archive_is_never_published(how: str) -> None:
    files = kept_files()
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        assert archive.tier(STATES[0]) == "disk"
        extents = [inode for path, inode in files.paths().items() if "extents" in path.parts]
        if how == "cut":
            del extents[-1].content[-1:]
        elif how == "longer":
            extents[-1].content.append(0)
        else:
            files.stuck = True
        assert read(archive, STATES[0]) is None
        files.stuck = False
        assert archive.tier(STATES[0]) == "none"


def test_a_touch_that_cannot_be_written_is_tried_again() -> None:
    files = kept_files()
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        archive.touch(STATES[0], "another")
        library.facts()
        files.fail_at = lambda _step, name: name == "create"
        library.pin("a", pinned=True)
        files.fail_at = lambda _step, _name: False
    with DiskLibrary(DATA, files=files) as library:
        library.open(HYBRID, PROBE, HOST)
        rows = {row.conversation: row.pinned for row in library.facts()}
        assert rows == {"a": True, "another": False}


def test_a_folder_that_cannot_be_synced_after_deleting_is_no_failure() -> None:
    files = kept_files()
    with DiskLibrary(DATA, files=files) as library:
        library.open(HYBRID, PROBE, HOST)
        files.fail_at = lambda _step, name: name == "sync_folder"
        library.clear(None)
        assert library.facts() == ()
    assert [path.name for path in files.paths()] == ["identity.state"]


def test_ids_of_another_order_are_another_state() -> None:
    files = kept_files()
    with DiskLibrary(DATA, files=files) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        turned = replace(STATES[0], ids=STATES[0].ids[::-1].copy())
        assert archive.find([(320, STATES[0].key)], turned.ids) is None


def to_path(path: PurePath) -> Path:
    return Path(path)
