"""Merges of an SPM vocabulary, rebuilt from its scores, and the file that keeps them.

SPM joins the neighbours whose joined piece has the highest score. As ranked merges that is: every
way to cut a piece in two pieces, best score first. Rebuilding takes seconds for 262,144 pieces, so
the result is kept in a folder of the caller's, named by the vocabulary's digest. A lost, cut or
damaged file costs a rebuild, never a wrong token.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from engine.checkpoint.source import TokenizerFacts

_LOG = logging.getLogger(__name__)
_MAGIC: Final = b"HEARTHMERGES1\n\0\0"
_NORMAL: Final = 1
# Cutting a piece takes the square of its length; real ones have less than 64 letters.
_LONGEST_PIECE: Final = 512
Merges = list[tuple[str, str]]


def spm_merges(facts: TokenizerFacts, cache: Path | None) -> Merges:
    """Every merge of an SPM vocabulary as (left, right) pieces, best first.

    Args:
        facts: tokens, types and scores, one a token.
        cache: folder for the kept form, made where missing; None keeps nothing.
    """
    with _collector_paused():
        pairs = _rebuild(facts) if cache is None else _kept_or_rebuilt(facts, cache)
        piece = facts.tokens.__getitem__
        return list(zip(map(piece, pairs[0::2]), map(piece, pairs[1::2]), strict=True))


def _kept_or_rebuilt(facts: TokenizerFacts, cache: Path) -> array[int]:
    digest = _digest(facts)
    path = cache / f"merges-{digest.hex()[:32]}.bin"
    pairs = _load(path, digest)
    if pairs is None:
        pairs = _rebuild(facts)
        _keep(path, digest, pairs)
    return pairs


def _rebuild(facts: TokenizerFacts) -> array[int]:
    """Ids (left, right, left, right, ...), sorted by score of the whole, then by left, right."""
    ids = {token: index for index, token in enumerate(facts.tokens)}
    find = ids.get
    found: list[tuple[float, int, int]] = []
    for token, kind, score in zip(facts.tokens, facts.token_types, facts.scores, strict=True):
        if kind != _NORMAL or len(token) > _LONGEST_PIECE:
            continue
        for cut in range(1, len(token)):
            left = find(token[:cut])
            if left is not None:
                right = find(token[cut:])
                if right is not None:
                    found.append((-score, left, right))
    found.sort()
    pairs = array("I")
    for _, left, right in found:
        pairs.append(left)
        pairs.append(right)
    return pairs


def _digest(facts: TokenizerFacts) -> bytes:
    seen = hashlib.sha256("\0".join(facts.tokens).encode("utf-8", "surrogatepass"))
    seen.update(array("d", facts.scores).tobytes())
    seen.update(array("q", facts.token_types).tobytes())
    return seen.digest()


def _seal(digest: bytes, body: bytes | memoryview) -> bytes:
    """What stands before the pairs: it ties them to the vocabulary and to every bit of them."""
    seen = hashlib.sha256(_MAGIC + digest)
    seen.update(body)
    return _MAGIC + seen.digest()


def _load(path: Path, digest: bytes) -> array[int] | None:
    """The kept pairs, or None where the file is missing or not what was written."""
    try:
        kept = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _LOG.info("merges unreadable file=%s error=%s", path.name, error.strerror)
        return None
    length = len(_MAGIC) + hashlib.sha256().digest_size
    body = memoryview(kept)[length:]
    pairs = array("I")
    if len(body) % (2 * pairs.itemsize) or kept[:length] != _seal(digest, body):
        _LOG.info("merges damaged file=%s bytes=%d", path.name, len(kept))
        return None
    pairs.frombytes(body)
    return pairs


def _keep(path: Path, digest: bytes, pairs: array[int]) -> None:
    """Write atomically; a full or read-only disk is logged and costs the next start."""
    body = pairs.tobytes()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as out:
            try:
                out.write(_seal(digest, body) + body)
                out.flush()
                os.fsync(out.fileno())
                out.close()
                Path(out.name).replace(path)
            except OSError:
                Path(out.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        _LOG.info("merges not kept file=%s error=%s", path.name, error.strerror)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Half a million live tuples would be walked again and again; none of them is a cycle."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
