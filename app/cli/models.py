"""``hearth models``: checkpoints and what they say of themselves.

The engine reads the files; the app only knows where they lie. Needs no lock: nothing is loaded, and
the engine is given a folder of its own for the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from app.cli.ask import read_settings
from app.cli.engine import ANSWER_LIMIT_S, MakeCommand, installed, passing_engine
from app.cli.options import ModelsOptions
from app.cli.output import Output
from app.directories import Directories
from app.errors import InputInvalid
from app.library.catalogue import Installed
from app.link.mailbox import Mailbox
from engine.protocol import CheckpointFacts, Inspected

UNITS: Final = ("bytes", "KiB", "MiB", "GiB")


class ModelLine(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint; null where its files do not tell.

    Attributes:
        format_bytes: bytes by format of the tensors.
        step_bytes: weights that one generated token reads.
        kv_token_bytes: K and V of a token in layers that attend to all, in 16-bit numbers.
        sliding_token_bytes: the same in sliding layers, which hold at most ``sliding_bytes``.
        recurrent_bytes: the recurrent state of a conversation, whatever its length.
    """

    name: str
    path: str
    file_bytes: int
    present: bool
    usable: bool
    title: str | None = None
    architecture: str | None = None
    family: str | None = None
    parameters: int | None = None
    format: str | None = None
    format_bytes: dict[str, int] | None = None
    context_tokens: int | None = None
    vocabulary: int | None = None
    has_template: bool | None = None
    has_vision: bool | None = None
    step_bytes: int | None = None
    kv_token_bytes: int | None = None
    sliding_token_bytes: int | None = None
    sliding_bytes: int | None = None
    recurrent_bytes: int | None = None
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
    problems: tuple[str, ...] = ()
    if options.files:
        entries = tuple(_named(path) for path in options.files)
    else:
        found = installed(places, read_settings(places, output))
        entries, problems = found.catalogue.installed, found.problems
    facts = inspected(entries, make_command)
    lines = tuple(line_of(entry, facts.get(str(entry.path))) for entry in entries)
    if options.json:
        output.json(ModelsReport(models=lines, problems=problems, folder=str(places.models)))
        return 0
    for line in lines:
        output.line(sentence(line))
        for detail in details(line) if options.files else ():
            output.line(f"  {detail}")
    if not lines:
        output.line(f"No model is installed; models are looked for in {places.models}.")
    for problem in problems:
        output.note(problem)
    return 0


def _named(path: Path) -> Installed:
    """What was typed as a file; its size is asked of the engine, which knows all parts."""
    try:
        there = path.expanduser().exists()
    except (OSError, ValueError) as error:
        raise InputInvalid(f"The model {str(path)!r} cannot be looked at: {error}.") from error
    if not there:
        raise InputInvalid(f"There is no model file {path}.")
    return Installed(path.expanduser().absolute(), 0)


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
    """What is shown of one checkpoint; one that cannot be used keeps what its header tells."""
    if facts is None:
        return ModelLine(
            name=entry.name,
            path=str(entry.path),
            file_bytes=entry.file_bytes,
            present=entry.present,
            usable=False,
            problem=None if entry.present else "It is not there now.",
        )
    usable = facts.problem is None
    return ModelLine(
        name=entry.name,
        path=str(entry.path),
        file_bytes=entry.file_bytes or facts.file_bytes,
        present=True,
        usable=usable,
        title=facts.name or None,
        architecture=facts.architecture or None,
        family=facts.family or None,
        parameters=facts.parameters or None,
        format=facts.format or None,
        format_bytes=facts.format_bytes or None,
        context_tokens=facts.context_tokens or None,
        vocabulary=facts.vocabulary or None,
        has_template=facts.has_template if usable else None,
        has_vision=facts.has_vision if usable else None,
        step_bytes=facts.step_bytes if usable else None,
        kv_token_bytes=facts.kv_token_bytes if usable else None,
        sliding_token_bytes=facts.sliding_token_bytes if usable else None,
        sliding_bytes=facts.sliding_bytes if usable else None,
        recurrent_bytes=facts.recurrent_bytes if usable else None,
        problem=facts.problem,
    )


def sentence(line: ModelLine) -> str:
    """One checkpoint for people."""
    size = f"{line.file_bytes / 1e9:.2f} GB"
    if not line.usable:
        return f"{line.name}  ({size})  {line.problem}"
    parts = [size, line.architecture, line.format]
    if line.context_tokens is not None:
        parts.append(f"context {line.context_tokens:,}")
    parts.append("chat" if line.has_template else "base, no chat template")
    return f"{line.name}  ({', '.join(str(part) for part in parts)})"


def details(line: ModelLine) -> Iterator[str]:
    """What else is known of one checkpoint, a line each."""
    if line.parameters is not None:
        mix = (f"{name} {_size(size)}" for name, size in (line.format_bytes or {}).items())
        yield f"{line.parameters:,} parameters: {', '.join(mix)}"
    if not line.usable:
        return
    pictures = "with a picture part" if line.has_vision else "text only"
    yield f"family {line.family}, {pictures}"
    yield f"a generated token reads {_size(line.step_bytes)} of weights"
    yield f"a token takes {_size(line.kv_token_bytes)} of K and V in layers that attend to all"
    if line.sliding_token_bytes:
        yield (
            f"and {_size(line.sliding_token_bytes)} in sliding layers, "
            f"{_size(line.sliding_bytes)} at most"
        )
    if line.recurrent_bytes:
        yield f"a conversation has a recurrent state of {_size(line.recurrent_bytes)}"


def _size(size: int | None) -> str:
    """Bytes in the largest unit of which there is one at least."""
    value, unit = float(size or 0), 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:,.0f} {UNITS[unit]}" if unit == 0 else f"{value:,.2f} {UNITS[unit]}"
