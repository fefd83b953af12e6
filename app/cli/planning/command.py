"""``hearth plan``: what a model would take of this machine's memory, or of a GPU that is described.

The engine plans from the model's header alone, of a file or of a repository on the hub. Needs no
lock and loads nothing. Exit code 0 where it fits, 1 where it is refused.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

from app.cli.ask import read_settings
from app.cli.engine import MakeCommand, chosen_model, installed, passing_engine
from app.cli.options import PlanOptions
from app.cli.output import Output
from app.cli.planning.report import report_of
from app.cli.planning.table import sentences
from app.directories import Directories
from app.errors import EXIT_FAILURE
from app.link.events import LoadWish
from app.link.mailbox import Mailbox
from engine.protocol import Planned

ANSWER_LIMIT_S: Final = 180.0
"""A header on the hub may be tens of megabytes."""
WIDTHS: Final = (80, 140)
_HUB: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(:[\w.-]+|(/[\w.-]+)+)?", re.ASCII)
_FILES: Final = (".gguf", ".safetensors")


def plan(
    options: PlanOptions, places: Directories, make_command: MakeCommand, output: Output
) -> int:
    """Run the command and return the exit code; raises AppError."""
    path = named(options.model, options, places, output)
    wish = LoadWish(context_tokens=options.context, streams=options.chats, kv=options.kv)
    with passing_engine(make_command) as engine, Mailbox() as box:
        engine.client.plan(path, on_message=box.put, wish=wish, gpu=options.gpu)
        answer = box.answer(Planned, ANSWER_LIMIT_S)
    report = report_of(path, options, answer)
    if options.json:
        output.json(report)
    else:
        columns = shutil.get_terminal_size((WIDTHS[0], 0)).columns
        for line in sentences(report, min(max(columns, WIDTHS[0]), WIDTHS[1])):
            output.line(line)
    return 0 if report.fits else EXIT_FAILURE


def named(model: str, options: PlanOptions, places: Directories, output: Output) -> str:
    """The path of an installed model, file or folder; the name itself of one on the hub.

    Raises:
        InputInvalid: it is neither.
    """
    if is_hub_name(model) and not Path(model).expanduser().exists():
        return model
    settings = read_settings(places, output)
    found = installed(places, settings)
    return str(chosen_model(options.model, None, settings, found.catalogue).absolute())


def is_hub_name(text: str) -> bool:
    """Whether a text can be OWNER/REPOSITORY, with :QUANTIZATION or /FILE after it."""
    if _HUB.fullmatch(text) is None or ".." in text:
        return False
    return text.count("/") > 1 or not text.lower().endswith(_FILES)
