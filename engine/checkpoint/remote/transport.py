"""Reading the hub: small JSON answers and exact ranges of files, nothing else.

Plain HTTP of the standard library: a range, a redirect to wherever the bytes lie, a time limit on
everything. No token, no cookies, no telemetry; only what a person named is asked for. Blocking.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from urllib.parse import quote, urlsplit

from engine.errors import HubUnavailable

AGENT: Final = "hearth"
WAIT_S: Final = 15.0
TOTAL_S: Final = 120.0
ATTEMPTS: Final = 3
JSON_LIMIT: Final = 16 << 20
PIECE_BYTES: Final = 1 << 20
_RANGE: Final = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", re.ASCII)
_REASONS: Final = {
    401: "there is no {what} on the hub, or it is private or asks for an agreement first",
    403: "the makers of {what} ask for an agreement on the hub first",
    404: "there is no {what} on the hub",
    416: "{what} is shorter than the hub says",
    429: "the hub asks for patience; try again in a minute",
}
_BROKEN: Final = (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to other places, but never from https to something less."""

    def redirect_request(  # noqa: PLR0917 - the library's own signature
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """The next request; raises HubUnavailable for an address that is no web address."""
        before, after = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if after not in ("http", "https") or (before == "https" and after != "https"):
            fp.close()
            raise HubUnavailable(f"The hub leads to an address that is not safe: {newurl[:80]!r}.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file, and the size of the whole."""

    content: bytes
    total_bytes: int


class Hub:
    """One hub. Holds no connection between calls; used from one thread at a time."""

    def __init__(self, endpoint: str, *, wait_s: float = WAIT_S, total_s: float = TOTAL_S) -> None:
        """Describe it.

        Args:
            wait_s: how long it may say nothing.
            total_s: how long one answer may take in all.
        """
        self._endpoint = endpoint.rstrip("/")
        self._wait_s = wait_s
        self._total_s = total_s
        self._opener = urllib.request.build_opener(_Redirects)

    @property
    def host(self) -> str:
        """Its name, for people."""
        return urlsplit(self._endpoint).netloc

    def repository(self, name: str, revision: str = "main") -> Any:
        """What the hub says of a repository, as parsed JSON; raises HubUnavailable."""
        address = f"/api/models/{quote(name)}/revision/{quote(revision, safe='')}?blobs=true"
        answer = self._read(address, name, {}, JSON_LIMIT)
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError) as error:
            raise HubUnavailable(f"The hub's answer about {name} cannot be understood.") from error

    def piece(self, name: str, revision: str, file: str, start: int, size: int) -> Piece:
        """Bytes ``start .. start + size`` of a file, fewer only at its end.

        What comes short is asked for again from where it ended.

        Raises:
            HubUnavailable: offline, missing, gated, or it gives other bytes than it was asked for.
        """
        address = f"/{quote(name)}/resolve/{quote(revision, safe='')}/{quote(file)}"
        found = b""
        for _ in range(ATTEMPTS):
            first = start + len(found)
            wanted = {"Range": f"bytes={first}-{start + size - 1}"}
            try:
                part = self._read(address, file, wanted, start + size - first)
            except _CutShort as cut:
                found += cut.content
                continue
            found += part.content
            if len(found) >= min(size, part.total_bytes - start):
                return Piece(found, part.total_bytes)
        raise HubUnavailable(
            f"The hub's answer was cut off {ATTEMPTS} times while {file} was read."
        )

    def _read(self, address: str, what: str, headers: dict[str, str], limit: int) -> Piece:
        request = urllib.request.Request(
            self._endpoint + address,
            headers={"User-Agent": AGENT, "Accept-Encoding": "identity", **headers},
        )
        try:
            with self._opener.open(request, timeout=self._wait_s) as answer:
                total = _total(answer, what, headers.get("Range"))
                return Piece(self._body(answer, what, limit, bool(headers)), total)
        except urllib.error.HTTPError as error:
            error.close()
            self._refuse(error.code, what, error)
        except urllib.error.URLError as error:
            raise self._offline(error.reason) from error
        except _BROKEN as error:
            raise self._offline(error) from error

    def _body(self, answer: Any, what: str, limit: int, is_range: bool) -> bytes:
        """All of it; raises where it is longer, cut short or too slow."""
        until, found = time.monotonic() + self._total_s, bytearray()
        promised = answer.headers.get("Content-Length", "")
        while len(found) <= limit:
            try:
                part = answer.read1(min(PIECE_BYTES, limit + 1 - len(found)))
            except _BROKEN as error:
                raise _CutShort(bytes(found)) from error
            if not part:
                break
            found += part
            if time.monotonic() > until:
                raise HubUnavailable(f"The hub takes too long to give {what}.")
        if len(found) > limit:
            raise HubUnavailable(f"The hub gives more of {what} than it was asked for.")
        if promised.isdecimal() and len(found) < int(promised):
            if is_range:
                raise _CutShort(bytes(found))
            raise HubUnavailable(f"The hub's answer about {what} was cut off.")
        return bytes(found)

    def _refuse(self, code: int, what: str, error: Exception) -> NoReturn:
        reason = _REASONS.get(code, "the hub failed with the number {code}")
        text = reason.format(what=what, code=code)
        raise HubUnavailable(f"{text[:1].upper()}{text[1:]}.", status=code) from error

    def _offline(self, reason: object) -> HubUnavailable:
        return HubUnavailable(f"The hub at {self.host} cannot be reached: {reason}.")


class _CutShort(Exception):
    """An answer ended before its promised length; ``content`` is what came."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.content = content


def _total(answer: Any, what: str, wanted: str | None) -> int:
    """The size of the whole file, as a range's answer says; raises where it is another range."""
    if wanted is None:
        return 0
    found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    if answer.status != http.client.PARTIAL_CONTENT or found is None:
        raise HubUnavailable(f"The hub gives {what} only as a whole, which was not asked for.")
    first = int(wanted.removeprefix("bytes=").split("-")[0])
    if int(found[1]) != first or int(found[2]) < first:
        raise HubUnavailable(f"The hub gives another part of {what} than it was asked for.")
    return int(found[3])
