"""A real child process that speaks the protocol and follows a script instead of computing.

``fake_command(Script(...))`` is a command for ``EngineClient`` and for the command line's
``main(..., engine_command=...)``. Each word of a reply is one token whose id is a checksum of it;
a prompt has as many tokens as words. Nothing is loaded from a file: any path does.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from engine.protocol import (
    AppMessage,
    AskMemory,
    Cancel,
    ChatMessage,
    CheckpointFacts,
    Counted,
    CountTokens,
    EngineMessage,
    Failure,
    Finished,
    FrameWriter,
    Generate,
    Hello,
    Inspect,
    Inspected,
    Load,
    Loaded,
    MemoryFacts,
    ModelFacts,
    Plan,
    PlanLine,
    Planned,
    Progress,
    Queued,
    Settle,
    Shutdown,
    StopReason,
    Timings,
    Tokens,
    Unload,
    Unloaded,
    Welcome,
    app_message_reader,
)
from tests.helpers.fake_script import DEFAULT_REPLY, Script
from tests.helpers.fake_states import FakeStates

__all__ = ["DEFAULT_REPLY", "Script", "fake_command"]

TEMPLATE_HASH = "fake-template"


def fake_command(script: Script | None = None) -> tuple[str, ...]:
    """The command that starts a fake engine with this script."""
    text = msgspec.json.encode(script or Script()).decode()
    return (sys.executable, "-m", "tests.helpers.fake_engine", text)


class FakeEngine:
    """The loop of the child."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._frames = FrameWriter(sys.stdout.buffer)
        self._frame_lock = threading.Lock()
        self._room = threading.Semaphore(script.at_once)
        self._kept = FakeStates(script, self._write)
        self._inbox: queue.Queue[AppMessage | None] = queue.Queue()
        self._cancelled: set[int] = set()
        self._ended = False
        self._model: str | None = None

    def run(self) -> int:
        """Answer until the pipe ends or Shutdown comes."""
        print(self._script.log_line, file=sys.stderr, flush=True)
        self._end_if("start")
        threading.Thread(target=self._read, daemon=True).start()
        first = self._inbox.get()
        if not isinstance(first, Hello):
            return 3
        time.sleep(self._script.welcome_s)
        self._write(
            Welcome(
                version=self._script.welcome_version,
                engine="fake 1",
                pid=os.getpid(),
                device="fake device",
                capabilities=("avx2", "avx512-bf16", "chosen: int4 bf16"),
                threads=2,
            )
        )
        while (message := self._inbox.get()) is not None:
            if isinstance(message, Shutdown):
                break
            if isinstance(message, Settle):
                self._end_if("settle")
            self._answer(message)
        while self._script.ignores_end:
            time.sleep(1)
        return 0

    def _read(self) -> None:
        # Unbuffered: Python's exit waits a second for a buffer that a thread is reading into.
        reader = app_message_reader(open(0, "rb", buffering=0, closefd=False))  # noqa: SIM115
        while (message := reader.read()) is not None:
            if isinstance(message, Cancel):
                self._cancelled.add(message.request)
            self._inbox.put(message)
        self._ended = True
        self._inbox.put(None)

    def _write(self, message: EngineMessage) -> None:
        with self._frame_lock:
            self._frames.write(message)

    def _answer(self, message: AppMessage) -> None:
        if self._kept.answer(message):
            return
        match message:
            case Load():
                self._load(message)
            case Unload(request=request):
                self._model = None
                self._write(Unloaded(request=request))
            case Plan(request=request, path=path):
                line = PlanLine(pool="ram", owner="weights", bytes=1000, reason=path)
                self._write(
                    Planned(request=request, context_tokens=8192, lines=(line,), refusal=None)
                )
            case Inspect(request=request, paths=paths):
                facts = tuple(map(_facts, paths))
                self._write(Inspected(request=request, files=facts))
            case Generate() if self._script.at_once > 1:
                threading.Thread(target=self._generate, args=(message,), daemon=True).start()
            case Generate():
                self._generate(message)
            case CountTokens(request=request, text=text):
                self._write(Counted(request=request, tokens=len(text.split())))
            case AskMemory(request=request):
                script = self._script
                pools, plan, measured = script.pools, script.plan, script.measured
                self._write(MemoryFacts(request=request, pools=pools, plan=plan, measured=measured))
            case _:
                pass

    def _load(self, message: Load) -> None:
        request = message.request
        self._kept.hear(message)
        self._end_if("load")
        for step in range(self._script.load_steps):
            time.sleep(self._script.load_s / self._script.load_steps)
            done, total = step + 1, self._script.load_steps
            self._write(Progress(request=request, phase="weights", done=done, total=total))
        if self._script.load_failure is not None and not self._fits(message):
            self._fail(request, self._script.load_failure, numbers=self._script.refusal)
            return
        self._model = message.path
        facts = ModelFacts(
            name=Path(message.path).stem,
            path=message.path,
            architecture="fake",
            context_tokens=message.context_tokens or 8192,
            vocabulary=65536,
            file_bytes=1,
            format="Q4_1",
            has_template=True,
            template_hash=TEMPLATE_HASH,
            notes=self._script.model_notes,
        )
        load_ms = 1000 * self._script.load_s
        self._write(Loaded(request=request, model=facts, load_ms=load_ms))
        self._kept.tell_tiers()

    def _fits(self, message: Load) -> bool:
        fitting = self._script.refusal.get("fitting_context_tokens", 0)
        asked = message.context_tokens
        return bool(self._script.refusal) and (
            message.spends_headroom or (asked is not None and asked <= int(fitting))
        )

    def _generate(self, message: Generate) -> None:
        self._tell_wait(message.request)
        with self._room:
            self._reply(message)

    def _tell_wait(self, request: int) -> None:
        wait = self._script.wait
        if wait is None:
            return
        self._write(
            Queued(
                request=request,
                position=wait.position,
                reason=wait.reason,
                needed_bytes=wait.needed_bytes,
                free_bytes=wait.free_bytes,
            )
        )
        until = time.monotonic() + wait.seconds
        while time.monotonic() < until and request not in self._cancelled and not self._ended:
            time.sleep(0.01)

    def _reply(self, message: Generate) -> None:
        request = message.request
        if self._model is None:
            self._fail(request, "request-invalid", "No checkpoint is loaded.")
            return
        if self._script.reply_failure is not None:
            self._fail(request, self._script.reply_failure)
            return
        texts = [m.text for m in message.messages] if message.raw is None else [message.raw]
        prompt_tokens = sum(len(text.split()) for text in texts)
        started = time.monotonic()
        self._prefill(request, prompt_tokens)
        first_ms = 1000 * (time.monotonic() - started)
        seed = message.sampling.seed if message.sampling.seed is not None else 7
        begun = message.begun
        ids, said, stop_reason = self._speak(message, seed)
        resume = self._script.resume
        decode_ms = max(0.0, 1000 * (time.monotonic() - started) - first_ms)
        self._write(
            Finished(
                request=request,
                text=(begun.text if begun is not None else "") + said["answer"],
                thinking_text=(begun.thinking_text if begun is not None else "") + said["thinking"],
                ids=(*(begun.ids if begun is not None else ()), *ids),
                begun_tokens=len(begun.ids) if begun is not None else 0,
                prompt_tokens=prompt_tokens,
                resumed_tokens=resume.tokens,
                resumed_from=resume.tier,
                resumed_bytes=resume.bytes,
                resumed_ms=resume.ms,
                reason=resume.reason,
                dropped_messages=resume.dropped_messages,
                timings=Timings(
                    prefill_ms=first_ms,
                    first_token_ms=first_ms if ids else None,
                    decode_ms=decode_ms if len(ids) > 1 else None,
                ),
                stop_reason=stop_reason,
                seed=seed,
                template_hash=TEMPLATE_HASH if message.raw is None else None,
            )
        )
        if message.conversation is not None and resume.tokens:
            self._kept.keep(message.conversation, prompt_tokens)

    def _prefill(self, request: int, tokens: int) -> None:
        until = time.monotonic() + self._script.prompt_s
        self._write(Progress(request=request, phase="prefill", done=tokens, total=tokens))
        while time.monotonic() < until and request not in self._cancelled and not self._ended:
            time.sleep(0.01)

    def _speak(self, message: Generate, seed: int) -> tuple[list[int], dict[str, str], StopReason]:
        ids: list[int] = []
        said = {"answer": "", "thinking": ""}
        limit = message.sampling.max_tokens
        for region, word in self._words(message, seed):
            if limit is not None and len(ids) >= limit:
                return ids, said, "max-tokens"
            if message.request in self._cancelled and not self._script.ignores_cancel:
                return ids, said, "stopped"
            if len(ids) == self._script.end_after:
                self._end_if("reply")
            if self._script.words_per_s:
                time.sleep(1 / self._script.words_per_s)
            token = zlib.crc32(word.encode()) % 65536
            ids.append(token)
            said[region] += word
            self._write(Tokens(request=message.request, region=region, text=word, ids=(token,)))
        return ids, said, "end-of-turn"

    def _words(
        self, message: Generate, seed: int
    ) -> Iterator[tuple[Literal["answer", "thinking"], str]]:
        last = message.raw if message.raw is not None else message.messages[-1].text
        everything = "|".join(f"{m.role}:{m.text}" for m in message.messages)
        whole = " ".join([self._script.reply] * self._script.times)
        reply = whole.replace("{echo}", last).replace("{seed}", str(seed))
        reply = reply.replace("{arguments}", " ".join(sys.argv[2:]))
        reply = reply.replace("{messages}", everything)
        begun = message.begun
        if begun is None:
            begun = ChatMessage(role="assistant", text="")
        for part in _after(begun.thinking_text, self._script.thinking):
            yield "thinking", part
        for part in _after(begun.text, reply):
            yield "answer", part

    def _fail(
        self,
        request: int,
        code: str,
        sentence: str = "The fake engine refuses.",
        numbers: dict[str, int | str] | None = None,
    ) -> None:
        told: dict[str, int | float | str] = dict(numbers or {})
        self._write(Failure(request=request, code=code, sentence=sentence, numbers=told))

    def _end_if(self, place: str) -> None:
        script = self._script
        if script.end_at != place or (script.once is not None and Path(script.once).exists()):
            return
        if script.once is not None:
            Path(script.once).touch()
        match script.end_how:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(70)
            case "garbage":
                sys.stdout.buffer.write(b"Traceback (most recent call last):\n" * 20)
                sys.stdout.buffer.flush()
                time.sleep(60)
            case "half-frame":
                sys.stdout.buffer.write(b"\x10\x00\x00\x00\x92")
                sys.stdout.buffer.flush()
                os._exit(0)
            case "hang":
                time.sleep(3600)


def _pieces(text: str) -> list[str]:
    words = text.split(" ")
    return [word if n == 0 else " " + word for n, word in enumerate(words)] if text else []


def _after(begun: str, whole: str) -> list[str]:
    """What is still to be said of a text after its beginning."""
    return _pieces(whole)[len(_pieces(begun)) :] if whole.startswith(begun) else _pieces(whole)


def _facts(path: str) -> CheckpointFacts:
    file = Path(path)
    if file.read_bytes()[:4] != b"GGUF":
        return CheckpointFacts(path=path, problem=f"{path} is not a GGUF file.")
    return CheckpointFacts(
        path=path,
        name=file.stem,
        architecture="fake",
        family="fake",
        format="Q4_1",
        format_bytes={"Q4_1": 66_355_200, "F32": 140_544},
        file_bytes=file.stat().st_size,
        parameters=134_515_008,
        context_tokens=8192,
        vocabulary=65536,
        has_template=True,
        has_vision=True,
        step_bytes=96_576_768,
        kv_token_bytes=23_040,
        sliding_token_bytes=512,
        sliding_bytes=262_144,
        recurrent_bytes=1_048_576,
    )


def main() -> int:
    """The child's entry."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    return FakeEngine(msgspec.json.decode(sys.argv[1], type=Script)).run()


if __name__ == "__main__":
    sys.exit(main())
