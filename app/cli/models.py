"""``hearth models``: the installed checkpoints and what they say of themselves.

The engine reads the files; the app only knows where they lie. Needs no lock: nothing is loaded, and
the engine is given a folder of its own for the time.
"""

from __future__ import annotations

import msgspec

from app.cli.ask import read_settings
from app.cli.engine import ANSWER_LIMIT_S, MakeCommand, installed, passing_engine
from app.cli.options import ModelsOptions
from app.cli.output import Output
from app.directories import Directories
from app.library.catalogue import Installed
from app.link.mailbox import Mailbox
from engine.protocol import CheckpointFacts, Inspected


class ModelLine(msgspec.Struct, frozen=True, kw_only=True):
    """One installed checkpoint; null where the file could not be asked."""

    name: str
    path: str
    file_bytes: int
    present: bool
    usable: bool
    title: str | None = None
    architecture: str | None = None
    format: str | None = None
    context_tokens: int | None = None
    vocabulary: int | None = None
    has_template: bool | None = None
    problem: str | None = None


class ModelsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints."""

    models: tuple[ModelLine, ...]
    problems: tuple[str, ...]
    folder: str


def models(
    options: ModelsOptions, places: Directories, make_command: MakeCommand, output: Output
) -> int:
    """Run the command and return the exit code; raises AppError."""
    found = installed(places, read_settings(places, output))
    entries = found.catalogue.installed
    facts = inspected(entries, make_command)
    lines = tuple(line_of(entry, facts.get(str(entry.path))) for entry in entries)
    if options.json:
        output.json(ModelsReport(models=lines, problems=found.problems, folder=str(places.models)))
        return 0
    for line in lines:
        output.line(sentence(line))
    if not lines:
        output.line(f"No model is installed; models are looked for in {places.models}.")
    for problem in found.problems:
        output.note(problem)
    return 0


def inspected(
    entries: tuple[Installed, ...], make_command: MakeCommand
) -> dict[str, CheckpointFacts]:
    """What the engine says of the files that are there, by path."""
    paths = tuple(str(entry.path) for entry in entries if entry.present)
    if not paths:
        return {}
    with passing_engine(make_command) as engine, Mailbox() as box:
        engine.client.inspect(paths, on_message=box.put)
        answer = box.answer(Inspected, ANSWER_LIMIT_S)
    return {facts.path: facts for facts in answer.files}


def line_of(entry: Installed, facts: CheckpointFacts | None) -> ModelLine:
    """What is shown of one checkpoint."""
    away = None if entry.present else "It is not there now."
    if facts is None or facts.problem is not None:
        return ModelLine(
            name=entry.name,
            path=str(entry.path),
            file_bytes=entry.file_bytes,
            present=entry.present,
            usable=False,
            problem=away if facts is None else facts.problem,
        )
    return ModelLine(
        name=entry.name,
        path=str(entry.path),
        file_bytes=entry.file_bytes,
        present=True,
        usable=True,
        title=facts.name or None,
        architecture=facts.architecture or None,
        format=facts.format or None,
        context_tokens=facts.context_tokens or None,
        vocabulary=facts.vocabulary or None,
        has_template=facts.has_template,
    )


def sentence(line: ModelLine) -> str:
    """One checkpoint for people."""
    size = f"{line.file_bytes / 1e9:.2f} GB"
    if not line.usable:
        return f"{line.name}  ({size})  {line.problem}"
    kind = "chat" if line.has_template else "base, no chat template"
    return (
        f"{line.name}  ({size}, {line.architecture}, {line.format}, "
        f"context {line.context_tokens:,}, {kind})"
        if line.context_tokens is not None
        else f"{line.name}  ({size}, {line.architecture}, {line.format}, {kind})"
    )
