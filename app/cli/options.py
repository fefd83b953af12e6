"""The command line as typed records. Every refusal is one InputInvalid; nothing is printed here."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from app.cli.planning.sizes import gpu
from app.errors import InputInvalid
from app.text import whole_characters
from engine.protocol import GpuFacts, KvWish

VERSION: Final = "0.1.0"
SEED_LIMIT: Final = 1 << 63
MOST_CHATS: Final = 64


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """``hearth``: open the window."""

    data_directory: Path | None


@dataclass(frozen=True, slots=True)
class AskOptions:
    """``hearth ask``; ``prompt`` is "-" for the standard input."""

    data_directory: Path | None
    prompt: str
    chat: str | None
    model: str | None
    system: str | None
    seed: int | None
    temperature: float | None
    max_tokens: int | None
    raw: bool
    thinking: bool | None
    json: bool


@dataclass(frozen=True, slots=True)
class ModelsOptions:
    """``hearth models``; no ``files`` lists what is installed."""

    data_directory: Path | None
    files: tuple[Path, ...]
    json: bool


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """``hearth doctor``."""

    data_directory: Path | None
    json: bool


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """``hearth bench``; ``peer`` is a program or the word "llama.cpp"."""

    data_directory: Path | None
    model: str | None
    peer: str | None
    runs: int
    json: bool


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """``hearth plan``; ``model`` is an installed name, a path, or a name on the hub.

    Attributes:
        gpu: None plans for what would compute now.
    """

    data_directory: Path | None
    model: str
    context: int | None
    chats: int
    kv: KvWish
    gpu: GpuFacts | None
    json: bool


Options = WindowOptions | AskOptions | ModelsOptions | PlanOptions | DoctorOptions | BenchOptions


def parse(arguments: Sequence[str]) -> Options:
    """Read the arguments; raises InputInvalid, or SystemExit after --help and --version."""
    found = _parser().parse_args(arguments)
    folder: Path | None = found.data_directory
    match found.command:
        case "ask":
            return _ask(found, folder)
        case "models":
            return ModelsOptions(folder, tuple(found.files), found.json)
        case "plan":
            return _plan(found, folder)
        case "doctor":
            return DoctorOptions(folder, found.json)
        case "bench":
            return BenchOptions(folder, found.model, found.peer, found.runs, found.json)
        case _:
            return WindowOptions(folder)


class _Parser(argparse.ArgumentParser):
    """argparse whose refusals are exceptions of ours, one sentence each."""

    def error(self, message: str) -> NoReturn:
        text = whole_characters(message.rstrip("."))
        raise InputInvalid(f"{text[:1].upper()}{text[1:]}. See {self.prog} --help.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="hearth",
        description="Talk to a model on this computer. Without a command, opens the window.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"hearth {VERSION}")
    _add_folder(parser, None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_ask(commands.add_parser("ask", help="ask one question", allow_abbrev=False))
    models = commands.add_parser("models", help="list the installed models", allow_abbrev=False)
    plan = commands.add_parser("plan", help="tell what a model would take", allow_abbrev=False)
    doctor = commands.add_parser("doctor", help="report on this machine", allow_abbrev=False)
    bench = commands.add_parser("bench", help="measure the speed", allow_abbrev=False)
    for command in (models, plan, doctor, bench):
        _add_folder(command, argparse.SUPPRESS)
        command.add_argument("--json", action="store_true", help="print one JSON object")
    models.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="only these files or folders, in full"
    )
    _add_plan(plan)
    bench.add_argument("--model", metavar="FILE|NAME", help="which model; else the usual one")
    bench.add_argument("--peer", metavar="PROGRAM", help="llama.cpp, or the path of llama-bench")
    bench.add_argument("--runs", type=_positive, default=5, help="runs of each (5)")
    return parser


def _add_ask(ask: argparse.ArgumentParser) -> None:
    _add_folder(ask, argparse.SUPPRESS)
    ask.add_argument("prompt", metavar="PROMPT", help="the question, or - for standard input")
    ask.add_argument("--chat", metavar="NAME", help="continue or begin a stored conversation")
    ask.add_argument("--model", metavar="FILE|NAME", help="which model; else the usual one")
    ask.add_argument("--system", metavar="S", help="the system prompt; '' sends an empty one")
    ask.add_argument("--seed", type=_seed, metavar="N", help="repeat the draws of this seed")
    ask.add_argument("--temperature", type=_temperature, metavar="T", help="0 is greedy")
    ask.add_argument("--max-tokens", type=_count, metavar="N", help="longest reply in tokens")
    ask.add_argument("--raw", action="store_true", help="continue the text, without any template")
    ask.add_argument(
        "--thinking",
        choices=["on", "off"],
        help="let the model think first or not; else as its template does",
    )
    ask.add_argument("--json", action="store_true", help="print one JSON object at the end")


def _add_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument(
        "model",
        metavar="MODEL",
        help="an installed one, a file or folder, or OWNER/NAME on the hub",
    )
    plan.add_argument(
        "--gpu", type=gpu, metavar="NAME,TOTAL,FREE", help='plan for a GPU: "RTX 4090,24GiB,23GiB"'
    )
    plan.add_argument("--context", type=_context, metavar="N", help="tokens; else the most")
    plan.add_argument("--chats", type=_chats, default=4, metavar="N", help="at once (4)")
    plan.add_argument(
        "--kv",
        choices=["full", "full-or-fp8", "fp8"],
        default="full",
        help="whether K and V may, or shall, be kept in 8 bits (full)",
    )


def _add_folder(parser: argparse.ArgumentParser, default: object) -> None:
    parser.add_argument(
        "--data-directory",
        type=_folder,
        metavar="FOLDER",
        default=default,
        help="keep conversations, settings and models in this folder",
    )


def _ask(found: argparse.Namespace, folder: Path | None) -> AskOptions:
    if found.raw and found.system is not None:
        raise InputInvalid("--raw sends the text alone, so --system has no place with it.")
    if found.raw and found.chat is not None:
        raise InputInvalid("--raw keeps no conversation, so --chat has no place with it.")
    if found.raw and found.thinking is not None:
        raise InputInvalid("--raw uses no template, so --thinking has no place with it.")
    if found.chat is not None and not found.chat.strip():
        raise InputInvalid("--chat needs the name of a conversation.")
    return AskOptions(
        data_directory=folder,
        prompt=whole_characters(found.prompt),
        chat=None if found.chat is None else whole_characters(found.chat.strip()),
        model=found.model,
        system=None if found.system is None else whole_characters(found.system),
        seed=found.seed,
        temperature=found.temperature,
        max_tokens=found.max_tokens,
        raw=found.raw,
        thinking=None if found.thinking is None else found.thinking == "on",
        json=found.json,
    )


def _plan(found: argparse.Namespace, folder: Path | None) -> PlanOptions:
    if not found.model.strip():
        raise InputInvalid("hearth plan needs the name of a model.")
    return PlanOptions(
        data_directory=folder,
        model=whole_characters(found.model.strip()),
        context=found.context,
        chats=found.chats,
        kv=found.kv,
        gpu=found.gpu,
        json=found.json,
    )


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("an empty name is no folder")
    return Path(text)


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return value


def _seed(text: str) -> int:
    value = _whole(text)
    if not 0 <= value < SEED_LIMIT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return value


def _count(text: str) -> int:
    value = _whole(text)
    if not 0 <= value < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return value


def _context(text: str) -> int:
    value = _whole(text.replace(",", ""))
    if not 1 <= value < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return value


def _chats(text: str) -> int:
    value = _whole(text)
    if not 1 <= value <= MOST_CHATS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST_CHATS}")
    return value


def _positive(text: str) -> int:
    value = _whole(text)
    if not 1 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return -1
