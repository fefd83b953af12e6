"""``hearth doctor``: a report on this machine that can be shown to others.

Home directory and user name are taken out. Needs no lock and loads nothing; the engine is started
for what it chose for this CPU, in a folder of its own. A part that fails is told and the rest goes
on; the exit code is then 1.
"""

from __future__ import annotations

from app.cli.engine import MakeCommand, installed, passing_engine
from app.cli.options import DoctorOptions
from app.cli.output import Output
from app.directories import Directories
from app.errors import AppError
from app.machine.report import EngineReport, engine_said, lines, made_report, redacted
from app.settings.file import SettingsFile


def doctor(
    options: DoctorOptions, places: Directories, make_command: MakeCommand, output: Output
) -> int:
    """Run the command: 0 when all is well, 1 when the engine does not start."""
    settings_file = SettingsFile(places.settings_file)
    found = installed(places, settings_file.settings)
    report = made_report(
        places,
        engine_report(make_command),
        quota_bytes=settings_file.settings.states_quota_bytes,
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
            return engine_said(engine.welcome)
    except AppError as error:
        return EngineReport(problem=error.sentence)
