"""The command line as typed records. Every refusal is one InputInvalid; nothing is printed here."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from app.cli import values
from app.cli.planning.sizes import gpu
from app.errors import InputInvalid
from app.machine.version import VERSION
from app.text import whole_characters
from engine.protocol import GpuFacts, KvWish


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
class StatesOptions:
    """``hearth states``; ``chat`` is the title of the conversation that is acted on."""

    data_directory: Path | None
    action: Literal["list", "pin", "unpin", "clear", "clear-all"]
    chat: str | None
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


Options = (
    WindowOptions
    | AskOptions
    | ModelsOptions
    | StatesOptions
    | PlanOptions
    | DoctorOptions
    | BenchOptions
)


def parse(arguments: Sequence[str]) -> Options:
    """Read the arguments; raises InputInvalid, or SystemExit after --help and --version."""
    found = _parser().parse_args(arguments)
    folder: Path | None = found.data_directory
    options: Options
    match found.command:
        case "ask":
            options = _ask(found, folder)
        case "models":
            options = ModelsOptions(folder, tuple(found.files), found.json)
        case "plan":
            options = _plan(found, folder)
        case "states":
            options = _states(found, folder)
        case "doctor":
            options = DoctorOptions(folder, found.json)
        case "bench":
            options = BenchOptions(folder, found.model, found.peer, found.runs, found.json)
        case _:
            options = WindowOptions(folder)
    return options


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
    states = commands.add_parser("states", help="list what is kept", allow_abbrev=False)
    _add_states(states)
    doctor = commands.add_parser("doctor", help="report on this machine", allow_abbrev=False)
    bench = commands.add_parser("bench", help="measure the speed", allow_abbrev=False)
    for command in (models, plan, states, doctor, bench):
        _add_folder(command, argparse.SUPPRESS)
        command.add_argument("--json", action="store_true", help="print one JSON object")
    models.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="only these files or folders, in full"
    )
    _add_plan(plan)
    bench.add_argument("--model", metavar="FILE|NAME", help="which model; else the usual one")
    bench.add_argument("--peer", metavar="PROGRAM", help="llama.cpp, or the path of llama-bench")
    bench.add_argument("--runs", type=values.positive, default=5, help="runs of each (5)")
    return parser


def _add_ask(ask: argparse.ArgumentParser) -> None:
    _add_folder(ask, argparse.SUPPRESS)
    ask.add_argument("prompt", metavar="PROMPT", help="the question, or - for standard input")
    ask.add_argument("--chat", metavar="NAME", help="continue or begin a stored conversation")
    ask.add_argument("--model", metavar="FILE|NAME", help="which model; else the usual one")
    ask.add_argument("--system", metavar="S", help="the system prompt; '' sends an empty one")
    ask.add_argument("--seed", type=values.seed, metavar="N", help="repeat the draws of this seed")
    ask.add_argument("--temperature", type=values.temperature, metavar="T", help="0 is greedy")
    ask.add_argument("--max-tokens", type=values.count, metavar="N", help="longest reply in tokens")
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
    plan.add_argument("--context", type=values.context, metavar="N", help="tokens; else the most")
    plan.add_argument("--chats", type=values.chats, default=4, metavar="N", help="at once (4)")
    plan.add_argument(
        "--kv",
        choices=["full", "full-or-fp8", "fp8"],
        default="full",
        help="whether K and V may, or shall, be kept in 8 bits (full)",
    )


def _add_states(states: argparse.ArgumentParser) -> None:
    action = states.add_mutually_exclusive_group()
    action.add_argument("--pin", metavar="NAME", help="never delete this chat's state for room")
    action.add_argument("--unpin", metavar="NAME", help="treat it like the others again")
    action.add_argument("--clear", metavar="NAME", help="delete this chat's state, not the chat")
    action.add_argument("--clear-all", action="store_true", help="delete every chat's state")


def _states(found: argparse.Namespace, folder: Path | None) -> StatesOptions:
    if found.clear_all:
        return StatesOptions(folder, "clear-all", None, found.json)
    for action in ("pin", "unpin", "clear"):
        name = getattr(found, action)
        if name is not None:
            chat = whole_characters(name.strip())
            return StatesOptions(folder, action, chat, found.json)
    return StatesOptions(folder, "list", None, found.json)


def _add_folder(parser: argparse.ArgumentParser, default: object) -> None:
    parser.add_argument(
        "--data-directory",
        type=values.folder,
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
