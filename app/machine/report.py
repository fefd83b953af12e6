"""A report on this machine for others to read: without the home and name of who runs it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from app.chat.kept.plain import megabytes
from app.directories import Directories
from app.errors import gibibytes
from app.lock import is_alive, read_owner
from app.machine.facts import Disk, Machine, machine
from app.machine.person import without_person
from app.machine.version import VERSION
from engine.protocol import Welcome


class EngineReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a started engine said; ``problem`` is why it did not, then the rest is empty."""

    version: str = ""
    device: str = ""
    threads: int = 0
    capabilities: tuple[str, ...] = ()
    problem: str | None = None


class StatesFolder(msgspec.Struct, frozen=True, kw_only=True):
    """Where prompt states are kept, and how much; ``quota_bytes`` null is the engine's choice."""

    folder: str
    disk_bytes: int
    quota_bytes: int | None


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints."""

    hearth: str
    machine: Machine
    engine: EngineReport
    data_directory: str
    states: StatesFolder
    in_use_by: str | None
    models: tuple[str, ...]
    notices: tuple[str, ...]


def made_report(
    places: Directories,
    engine: EngineReport,
    *,
    quota_bytes: int | None,
    models: tuple[str, ...],
    notices: tuple[str, ...],
) -> DoctorReport:
    """Look at the machine; some seconds. ``engine`` is what a started one said."""
    owner = read_owner(places.lock_file)
    return DoctorReport(
        hearth=VERSION,
        machine=machine((places.data, places.models)),
        engine=engine,
        data_directory=str(places.data),
        states=states_folder(places.states, quota_bytes),
        in_use_by=owner.what if owner is not None and is_alive(owner) else None,
        models=models,
        notices=notices,
    )


def engine_said(welcome: Welcome) -> EngineReport:
    """What a started engine chose."""
    return EngineReport(
        version=welcome.engine,
        device=welcome.device,
        threads=welcome.threads,
        capabilities=welcome.capabilities,
    )


def states_folder(folder: Path, quota_bytes: int | None) -> StatesFolder:
    """The folder of kept states as it is; files that come and go meanwhile do not count."""
    taken = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                taken += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118
    return StatesFolder(folder=str(folder), disk_bytes=taken, quota_bytes=quota_bytes)


def lines(report: DoctorReport) -> Iterator[str]:
    """The report for people."""
    found, engine = report.machine, report.engine
    yield f"Hearth       {report.hearth}"
    yield f"System       {found.system}"
    yield f"Python       {found.python}"
    yield f"Packages     {', '.join(_packages(found.packages))}"
    yield f"CPU          {found.cpu}, {found.physical_cores} cores, {found.logical_cores} threads"
    flags = "not told by this system" if found.cpu_flags is None else " ".join(found.cpu_flags)
    yield f"CPU flags    {flags or 'none that matter'}"
    free, total = gibibytes(found.ram_free_bytes), gibibytes(found.ram_bytes)
    yield f"Memory       {free} free of {total}"
    yield f"GPU          {found.gpu_note}"
    for gpu in found.gpus:
        yield f"             {gpu}"
    if engine.problem is None:
        yield f"Engine       {engine.version} on {engine.device}, {engine.threads} threads"
        yield f"Chosen       {engine.capabilities[-1] if engine.capabilities else 'not told'}"
    else:
        yield f"Engine       {engine.problem}"
    for one in found.disks:
        yield f"Disk         {one.folder}: {_disk(one)}"
    yield f"States       {report.states.folder}: {_kept(report.states)}"
    yield f"Keyring      {found.keyring}"
    yield f"Display      {found.display}"
    yield f"In use by    {report.in_use_by or 'nobody'}"
    yield f"Models       {', '.join(report.models) or 'none'}"
    for notice in report.notices:
        yield f"Notice       {notice}"


def redacted(
    report: DoctorReport, home: Path | None = None, user: str | None = None
) -> DoctorReport:
    """The report without the person's home directory and name."""
    shown = without_person(home, user)
    return msgspec.convert(_mapped(msgspec.to_builtins(report), shown), DoctorReport)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """``value`` with each text in it changed, names of fields excepted."""
    match value:
        case str():
            return change(value)
        case dict():
            return {key: _mapped(inner, change) for key, inner in value.items()}
        case list() | tuple():
            return [_mapped(inner, change) for inner in value]
        case _:
            return value


def _packages(found: dict[str, Any]) -> Iterator[str]:
    for name, version in found.items():
        yield f"{name} {version}" if version is not None else f"no {name}"


def _disk(found: Disk) -> str:
    if found.free_bytes is None or found.total_bytes is None:
        return "cannot be read"
    free, total = found.free_bytes / 1e9, found.total_bytes / 1e9
    writable = "" if found.writable else ", cannot be written"
    return f"{free:.1f} GB free of {total:.1f} GB{writable}"


def _kept(found: StatesFolder) -> str:
    taken = megabytes(found.disk_bytes)
    if found.quota_bytes is None:
        return f"{taken}, at most 20 GB or a tenth of the free disk"
    if found.quota_bytes == 0:
        return f"{taken}, and nothing more by the settings"
    return f"{taken}, at most {megabytes(found.quota_bytes)}"
