"""``hearth doctor``: a report on this machine that can be shown to others.

Home directory and user name are taken out. Needs no lock and loads nothing; the engine is started
for what it chose for this CPU, in a folder of its own. A part that fails is told and the rest goes
on; the exit code is then 1.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from app.chat.kept.words import megabytes
from app.cli.engine import MakeCommand, installed, passing_engine
from app.cli.looking.machine import Disk, Machine, machine
from app.cli.options import VERSION, DoctorOptions
from app.cli.output import Output
from app.directories import Directories
from app.errors import AppError, gibibytes
from app.lock import is_alive, read_owner
from app.settings.file import SettingsFile
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


def doctor(
    options: DoctorOptions, places: Directories, make_command: MakeCommand, output: Output
) -> int:
    """Run the command: 0 when all is well, 1 when the engine does not start."""
    settings_file = SettingsFile(places.settings_file)
    found = installed(places, settings_file.settings)
    owner = read_owner(places.lock_file)
    report = DoctorReport(
        hearth=VERSION,
        machine=machine((places.data, places.models)),
        engine=engine_report(make_command),
        data_directory=str(places.data),
        states=states_folder(places.states, settings_file.settings.states_quota_bytes),
        in_use_by=owner.what if owner is not None and is_alive(owner) else None,
        models=tuple(entry.name for entry in found.catalogue.installed if entry.present),
        notices=(*settings_file.notices, *found.problems),
    )
    shown = redacted(report)
    if options.json:
        output.json(shown)
    else:
        for line in lines(shown):
            output.line(line)
    return 0 if report.engine.problem is None else 1


def engine_report(make_command: MakeCommand) -> EngineReport:
    """Start an engine and ask what it chose."""
    try:
        with passing_engine(make_command) as engine:
            return _said(engine.welcome)
    except AppError as error:
        return EngineReport(problem=error.sentence)


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
    home = home if home is not None else Path.home()
    name = user if user is not None else _user()
    homes = [path for path in dict.fromkeys((str(home.resolve()), str(home))) if len(path) > 1]
    pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")

    def shown(text: str) -> str:
        for spelling in homes:
            text = text.replace(spelling, "~")
        return pattern.sub("USER", text) if len(name) > 1 else text

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


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def _said(welcome: Welcome) -> EngineReport:
    return EngineReport(
        version=welcome.engine,
        device=welcome.device,
        threads=welcome.threads,
        capabilities=welcome.capabilities,
    )


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
