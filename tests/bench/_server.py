"""llama.cpp's server beside us: a long prompt, its next turn, and the same after a restart."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_S = 60.0
SLOT = "chat.bin"


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """How to start it: one slot, two threads, slots saved to a folder; ``options`` besides."""

    binary: Path
    model: Path
    context: int
    options: tuple[str, ...] = ()

    def turns(self, question: str, follow_up: str) -> dict[str, float]:
        """Milliseconds to the first token by the way it was begun; a restore is counted in."""
        found: dict[str, float] = {}
        with tempfile.TemporaryDirectory() as folder:
            with self._running(folder) as ask:
                chat: list[dict[str, str]] = [{"role": "user", "content": question}]
                found["cold"], text = _first_token(ask, chat)
                chat += [
                    {"role": "assistant", "content": text},
                    {"role": "user", "content": follow_up},
                ]
                ask("/slots/0?action=save", {"filename": SLOT})
                found["same process"], _ = _first_token(ask, chat)
            with self._running(folder) as ask:
                began = time.perf_counter()
                ask("/slots/0?action=restore", {"filename": SLOT})
                restored = (time.perf_counter() - began) * 1e3
                found["slot file after a restart"] = restored + _first_token(ask, chat)[0]
        return found

    @contextmanager
    def _running(self, folder: str) -> Iterator[Any]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [
            str(self.binary), "-m", str(self.model), "-c", str(self.context), "-t", "2", "-np", "1",
            "--port", str(port), "--slot-save-path", folder, "--temp", "0",
            *self.options,
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        base = f"http://127.0.0.1:{port}"

        def ask(path: str, body: dict[str, Any]) -> Any:
            return urllib.request.urlopen(
                urllib.request.Request(
                    base + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
                ),
                timeout=300,
            )

        try:
            _wait_until_healthy(base)
            yield ask
        finally:
            process.terminate()
            process.wait(10)


def _wait_until_healthy(base: str) -> None:
    ends = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(base + "/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)


def _first_token(ask: Any, chat: list[dict[str, str]]) -> tuple[float, str]:
    """Milliseconds until the first piece of text, and the whole of it."""
    body = {"messages": chat, "stream": True, "max_tokens": 24, "cache_prompt": True}
    began, first, text = time.perf_counter(), 0.0, ""
    with ask("/v1/chat/completions", body) as answer:
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            piece = json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
            if piece and not first:
                first = (time.perf_counter() - began) * 1e3
            text += piece
    return first, text
