"""The ``hearth`` command: reads the arguments, runs one command, gives its exit code.

    0    done                     2    what was typed makes no sense
    1    failed                   130  stopped with Ctrl+C

Every failure is one sentence on stderr. Qt is imported only to open the window, torch never.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from app.cli.engine import MakeCommand
from app.cli.options import (
    AskOptions,
    BenchOptions,
    DoctorOptions,
    ModelsOptions,
    Options,
    PlanOptions,
    StatesOptions,
    parse,
)
from app.cli.output import Output, OutputClosed, forget_output, standard_output
from app.directories import Directories, directories
from app.errors import EXIT_INPUT, AppError, EngineRefused
from app.link.process import engine_command

EXIT_INTERRUPTED: Final = 130
OpenWindow = Callable[[Directories, MakeCommand], int]


def main(
    arguments: Sequence[str],
    *,
    make_command: MakeCommand = engine_command,
    open_window: OpenWindow | None = None,
) -> int:
    """Run ``hearth`` with these arguments.

    Args:
        arguments: without the program's name.
        make_command: the engine to start on a data directory.
        open_window: what opens the window; None takes the app's own.

    Returns:
        The exit code. ``--help`` and ``--version`` raise SystemExit, as argparse does.
    """
    output = standard_output()
    keep_log_quiet()
    try:
        options = parse(arguments)
        return _run(options, make_command, open_window or _window, output)
    except AppError as error:
        output.note(error.sentence)
        return exit_code(error)
    except OutputClosed:
        forget_output()
        return 0
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def keep_log_quiet() -> None:
    """Without a handler of its own Python would print the log between our sentences."""
    ours = logging.getLogger("app")
    if not ours.handlers:
        ours.addHandler(logging.NullHandler())


def exit_code(error: AppError) -> int:
    """2 where what was typed makes no sense, also where only the engine could see that."""
    if isinstance(error, EngineRefused) and error.failure.code == "request-invalid":
        return EXIT_INPUT
    return error.exit_code


def _run(
    options: Options, make_command: MakeCommand, open_window: OpenWindow, output: Output
) -> int:
    # Each command imports what it needs itself, so that the window does not pay for all of them.
    places = directories(options.data_directory)
    match options:
        case AskOptions():
            from app.cli.ask import ask  # noqa: PLC0415

            code = ask(options, places, make_command, output)
        case ModelsOptions():
            from app.cli.models import models  # noqa: PLC0415

            code = models(options, places, make_command, output)
        case PlanOptions():
            from app.cli.planning.command import plan  # noqa: PLC0415

            code = plan(options, places, make_command, output)
        case StatesOptions():
            from app.cli.states import states  # noqa: PLC0415

            code = states(options, places, make_command, output)
        case DoctorOptions():
            from app.cli.looking.doctor import doctor  # noqa: PLC0415

            code = doctor(options, places, make_command, output)
        case BenchOptions():
            from app.cli.looking.bench import bench  # noqa: PLC0415

            code = bench(options, places, make_command, output)
        case _:
            code = open_window(places, make_command)
    return code


def _window(places: Directories, make_command: MakeCommand) -> int:
    from app.start import open_window  # noqa: PLC0415 - what the window needs, only for it

    return open_window(places, make_command)
