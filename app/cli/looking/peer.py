"""llama.cpp's own bench as the peer: found, run once, its figures read."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from app.errors import AppError, InputInvalid

PROGRAM: Final = "llama-bench"
NAME: Final = "llama.cpp"
RUN_LIMIT_S: Final = 600.0


class PeerFailed(AppError):
    """The peer's program did not give figures."""

    code = "peer-failed"


class _Line(msgspec.Struct):
    """What is used of one line of llama-bench's JSON."""

    n_prompt: int
    n_gen: int
    avg_ts: float


@dataclass(frozen=True, slots=True)
class PeerTask:
    """What the peer measures: a model, on the GPU or on so many threads."""

    model: Path
    threads: int
    on_gpu: bool

    @property
    def arguments(self) -> tuple[str, ...]:
        """As llama-bench takes them: on a GPU all layers and its own attention, else nothing."""
        where = ("-ngl", "99", "-fa", "1") if self.on_gpu else ("-ngl", "0")
        return ("-m", str(self.model), "-t", str(self.threads), *where)


@dataclass(frozen=True, slots=True)
class Peer:
    """llama-bench on this machine."""

    program: Path

    def prefill_tok_s(self, task: PeerTask, tokens: int) -> float:
        """Prompt tokens a second."""
        return self._run(task, ("-p", str(tokens), "-n", "0"))

    def decode_tok_s(self, task: PeerTask, tokens: int, depth: int) -> float:
        """Generated tokens a second after ``depth`` tokens."""
        return self._run(task, ("-p", "0", "-n", str(tokens), "-d", str(depth)))

    def _run(self, task: PeerTask, what: tuple[str, ...]) -> float:
        command = (str(self.program), *task.arguments, "-r", "1")
        try:
            ended = subprocess.run(
                (*command, "-o", "json", *what),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=RUN_LIMIT_S,
                check=True,
            )
            found = msgspec.json.decode(ended.stdout, type=list[_Line])
            return found[0].avg_ts
        except (OSError, subprocess.SubprocessError, msgspec.DecodeError, IndexError) as error:
            raise PeerFailed(f"{self.program} gave no figures: {error}.") from error


def find_peer(wanted: str | None) -> Peer | None:
    """The peer that was asked for, or the one on PATH; raises InputInvalid when it is not there."""
    if wanted is None or wanted == NAME:
        found = shutil.which(PROGRAM)
        if found is None and wanted is not None:
            raise InputInvalid(f"{PROGRAM} is not on PATH; give its path with --peer.")
        return None if found is None else Peer(Path(found))
    found = shutil.which(wanted)
    if found is None:
        raise InputInvalid(f"There is no program {wanted}.")
    return Peer(Path(found).absolute())
