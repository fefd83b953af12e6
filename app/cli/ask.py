"""``hearth ask``: one question, its reply on stdout as it comes.

Ctrl+C stops the reply and keeps what came; a second one ends the engine at once. No engine is left
behind in any case.
"""

from __future__ import annotations

import contextlib
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from app.chat.conversation import Conversation, chat_name
from app.chat.kept.plain import left_out_words
from app.chat.store import Store, open_store
from app.cli.chat_log import ReplyLog, open_chat
from app.cli.engine import MakeCommand, chosen_model, installed, own_command, started_engine
from app.cli.options import AskOptions
from app.cli.output import Output
from app.cli.reply import RunningReply
from app.directories import Directories, make_private
from app.errors import InputInvalid
from app.library.catalogue import ENDING
from app.link.client import Question
from app.lock import DirectoryLock
from app.settings.file import SettingsFile
from app.settings.record import Settings
from engine.protocol import MAX_FRAME_BYTES, ChatMessage, Finished, Loaded, Sampling

EXIT_INTERRUPTED: Final = 130
SETTLE_S: Final = 10.0
"""How long a stored chat's state may take to get to the disk after the reply is printed."""

QUESTION_BYTES: Final = MAX_FRAME_BYTES // 2
"""Twice as much fits into a frame, so a stored question can always be sent."""

END_NOTES: Final = {
    "context-full": "The reply ended because the context is full.",
    "failed": "The reply ended because the engine failed.",
}


class AskReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints; null where nothing was measured.

    ``ttft_ms`` counts from the request's arrival in the engine, with the model loaded, to the first
    token; rates are tokens a second. ``resumed_tokens`` of the prompt came from a state kept on
    ``resumed_from`` (device, host, disk or none); ``reason`` says why where that is little.
    ``dropped_messages`` of the chat, the oldest, no longer fit and were not seen by the model.
    """

    text: str
    thinking_text: str
    token_ids: tuple[int, ...]
    prompt_tokens: int
    completion_tokens: int
    resumed_tokens: int
    resumed_from: str
    resumed_bytes: int
    resumed_ms: float
    reason: str | None
    dropped_messages: int
    ttft_ms: float | None
    load_ms: float | None
    prefill_tok_s: float | None
    decode_tok_s: float | None
    stop_reason: str
    model: str
    seed: int


def ask(options: AskOptions, places: Directories, make_command: MakeCommand, output: Output) -> int:
    """Run the command and return the exit code.

    Raises:
        AppError, OutputClosed, KeyboardInterrupt: it ended early; whoever calls knows the code.
    """
    prompt = read_prompt(options, output)
    make_private(places.data)
    settings = read_settings(places, output)
    with contextlib.ExitStack() as stack:
        stack.enter_context(DirectoryLock(places.lock_file, "hearth ask"))
        store: Store | None = None
        chat: Conversation | None = None
        if options.chat is not None:
            store = stack.enter_context(opened_store(places, output))
            chat = open_chat(store, options.chat, options.system)
        path = model_path(options, chat, settings, places)
        command = own_command(places, settings, make_command)
        engine = stack.enter_context(started_engine(places, command))
        loaded = engine.load(path, settings.to_wish())
        sampling = sampling_of(options, settings.sampling.to_sampling())
        log = None
        if store is not None and chat is not None:
            log = ReplyLog(store, chat, prompt, loaded, sampling)
            engine.client.open_chats([chat_name(chat.id)])
        reply = RunningReply(engine.client, output, log, streams=not options.json)
        finished = reply.run(question_of(options, prompt, log), sampling)
        left_out = log.left_out if log is not None else 0
        report(options, loaded, finished, left_out, output)
        if log is not None and not reply.interrupted:
            engine.settle(SETTLE_S)
        return EXIT_INTERRUPTED if reply.interrupted else 0


def read_prompt(options: AskOptions, output: Output) -> str:
    """The question, from the argument or the standard input; raises InputInvalid when empty."""
    prompt = read_input(output) if options.prompt == "-" else options.prompt
    if options.raw:
        return prompt
    if options.prompt == "-":
        prompt = prompt.removesuffix("\n").removesuffix("\r")
    if not prompt.strip():
        raise InputInvalid("The question is empty.")
    return prompt


def read_input(output: Output) -> str:
    """All of the standard input; bytes that are not UTF-8 become U+FFFD, which is told."""
    content = b"" if sys.stdin is None else sys.stdin.buffer.read(QUESTION_BYTES + 1)
    if len(content) > QUESTION_BYTES:
        raise InputInvalid(f"The question is longer than {QUESTION_BYTES:,} bytes.")
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        output.note(f"The byte at offset {error.start} is not UTF-8; U+FFFD stands in its place.")
        return content.decode("utf-8", "replace").removeprefix("\ufeff")


def read_settings(places: Directories, output: Output) -> Settings:
    """The settings; what a person should know of them is told."""
    file = SettingsFile(places.settings_file)
    for notice in file.notices:
        output.note(notice)
    return file.settings


def opened_store(places: Directories, output: Output) -> Store:
    """The conversations; what a person should know of the opening is told."""
    opened = open_store(places.store_file)
    for notice in opened.notices:
        output.note(notice)
    return opened.store


def model_path(
    options: AskOptions, chat: Conversation | None, settings: Settings, places: Directories
) -> Path:
    """The checkpoint that answers: the named one, the chat's last one, or the usual one."""
    catalogue = installed(places, settings).catalogue
    last = chat.model if chat is not None else None
    return chosen_model(options.model, last, settings, catalogue)


def sampling_of(options: AskOptions, usual: Sampling) -> Sampling:
    """The settings' sampling with what the command line says instead."""
    said = {
        "temperature": options.temperature,
        "seed": options.seed,
        "max_tokens": options.max_tokens,
    }
    return msgspec.structs.replace(usual, **{k: v for k, v in said.items() if v is not None})


def question_of(options: AskOptions, prompt: str, log: ReplyLog | None) -> Question:
    """What the engine is asked."""
    if log is not None:
        return replace(log.question(), thinking=options.thinking)
    if options.raw:
        return Question(raw=prompt)
    system = () if options.system is None else (ChatMessage(role="system", text=options.system),)
    messages = (*system, ChatMessage(role="user", text=prompt))
    return Question(messages, thinking=options.thinking)


def report(
    options: AskOptions, loaded: Loaded, finished: Finished, left_out: int, output: Output
) -> None:
    """End the reply; with ``--json`` print the object. Notes go to stderr."""
    if options.json:
        output.json(ask_report(loaded, finished, left_out))
    else:
        output.end_text()
    notes = dict.fromkeys((*loaded.model.notes, *finished.notes))
    if finished.stop_reason in END_NOTES:
        notes[END_NOTES[finished.stop_reason]] = None
    if left_out:
        notes[left_out_words(left_out)] = None
    for note in notes:
        output.note(note)


def ask_report(loaded: Loaded, finished: Finished, left_out: int) -> AskReport:
    """The object that ``--json`` prints; ``left_out`` messages were not seen by the model."""
    timings = finished.timings
    read_tokens = finished.prompt_tokens - finished.resumed_tokens
    return AskReport(
        text=finished.text,
        thinking_text=finished.thinking_text,
        token_ids=finished.ids,
        prompt_tokens=finished.prompt_tokens,
        completion_tokens=len(finished.ids),
        resumed_tokens=finished.resumed_tokens,
        resumed_from=finished.resumed_from,
        resumed_bytes=finished.resumed_bytes,
        resumed_ms=finished.resumed_ms,
        reason=finished.reason,
        dropped_messages=left_out,
        ttft_ms=timings.first_token_ms,
        load_ms=loaded.load_ms,
        prefill_tok_s=per_second(read_tokens, timings.prefill_ms),
        decode_tok_s=per_second(len(finished.ids) - 1, timings.decode_ms),
        stop_reason=finished.stop_reason,
        model=Path(loaded.model.path).name.removesuffix(ENDING),
        seed=finished.seed,
    )


def per_second(count: int, milliseconds: float | None) -> float | None:
    """``count`` in ``milliseconds`` as a rate; None for no count, no time or no finite rate."""
    if milliseconds is None or count <= 0 or not milliseconds > 0:
        return None
    rate = 1000.0 * count / milliseconds
    return rate if math.isfinite(rate) else None
