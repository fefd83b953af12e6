"""A hub on the loopback: repositories in memory, ranges behind a redirect, and every fault."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

REVISION = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """What the server has and how it misbehaves.

    Attributes:
        repositories: name to path to bytes.
        listed: names and sizes that the listing adds or changes.
        status: a number that is answered instead of bytes; None for none.
        cut_after: bytes after which an answer's connection is closed, of so many answers.
        ignores_range, shifts_range: a server that gives something else than was asked for.
        delay_s: before each piece of 100 bytes of a file.
        extra: bytes that are given beyond what was asked for.
        redirect: where files lead; None to the server's other place.
        asked: (path, range) of each request.
    """

    repositories: dict[str, dict[str, Any]] = field(default_factory=dict)
    listed: dict[str, Any] = field(default_factory=dict)
    answer: bytes | None = None
    status: int | None = None
    cut_after: int = 0
    cuts: int = 0
    ignores_range: bool = False
    shifts_range: bool = False
    says_total: int | None = None
    delay_s: float = 0.0
    extra: bytes = b""
    redirect: str | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)
    endpoint: str = ""

    def listing(self, name: str) -> bytes | None:
        """The JSON answer about a repository."""
        files = self.repositories.get(name)
        if files is None or self.answer is not None:
            return self.answer
        sizes: dict[str, Any] = {path: len(content) for path, content in files.items()}
        entries = [
            {"rfilename": path, "size": size, "blobId": "x"}
            for path, size in (sizes | self.listed).items()
        ]
        return json.dumps({"id": name, "sha": REVISION, "siblings": entries}).encode()


class _Answers(BaseHTTPRequestHandler):
    """One request; the hub is the server's."""

    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> FakeHub:
        hub: FakeHub = self.server.hub  # type: ignore[attr-defined]
        return hub

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((path, self.headers.get("Range", "")))
        if self.hub.status is not None:
            self._say(self.hub.status, b"{}")
        elif path.startswith("/api/models/"):
            name = path.removeprefix("/api/models/").partition("/revision/")[0]
            found = self.hub.listing(name)
            self._say(404 if found is None else 200, found or b"{}")
        elif path.startswith("/cdn/"):
            self._file(path.removeprefix("/cdn/"))
        else:
            self.send_response(302)
            self.send_header("Location", self.hub.redirect or f"/cdn{path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _file(self, path: str) -> None:
        name, _, file = path.partition(f"/resolve/{REVISION}/")
        content = self.hub.repositories.get(name, {}).get(file)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if content is None:
            self._say(404, b"")
        elif wanted is None or self.hub.ignores_range:
            self._say(200, content[:])
        else:
            first, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
            said = first + (1 if self.hub.shifts_range else 0)
            total = len(content) if self.hub.says_total is None else self.hub.says_total
            self._say(
                206, content[first : last + 1] + self.hub.extra, f"bytes {said}-{last}/{total}"
            )

    def _say(self, status: int, body: bytes, content_range: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        if self.hub.delay_s and content_range:
            self._drip(body)
            return
        if (
            (content_range or not self.hub.cut_after)
            and self.hub.cuts
            and len(body) > self.hub.cut_after
        ):
            self.hub.cuts -= 1
            body = body[: self.hub.cut_after]
            self.close_connection = True
        self.wfile.write(body)

    def _drip(self, body: bytes) -> None:
        """As slowly as it takes; the reader may be gone by then."""
        self.close_connection = True
        with suppress(OSError):
            for first in range(0, len(body), 100):
                self.wfile.write(body[first : first + 100])
                self.wfile.flush()
                time.sleep(self.hub.delay_s)


@contextmanager
def served(hub: FakeHub) -> Iterator[FakeHub]:
    """The hub on a free port of the loopback, for the time of a block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    server.hub = hub  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
