"""Merges of an SPM vocabulary, rebuilt from its scores, and the file that keeps them.

SPM joins the neighbours whose joined piece has the best score, until none has one. Merges do the
same when each piece has one: the last join that SPM makes where the piece stands alone, ranked by
the piece's score. (Another way to cut the piece is never joined: for a piece to come out at all,
no join may reach over its ends, and then those inside happen as if it stood alone.)

Rebuilding takes seconds for 262,144 pieces, so the result is kept in a folder of the caller's,
named by the vocabulary's digest. A lost, cut or damaged file costs a rebuild, never a wrong token.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

from engine.checkpoint.source import TokenizerFacts
from engine.errors import CheckpointUnreadable

_LOG = logging.getLogger(__name__)
_MAGIC: Final = b"HEARTHMERGES2\n\0\0"
_NORMAL: Final = 1
# Joining a piece takes up to the square of its length; Gemma's 255,474 pieces add up to 10 million.
_WORK_LIMIT: Final = 100_000_000
Merges = list[tuple[str, str]]


def spm_merges(facts: TokenizerFacts, cache: Path | None) -> Merges:
    """Every merge of an SPM vocabulary as (left, right) pieces, best first.

    Args:
        facts: tokens, types and scores, one a token.
        cache: folder for the kept form, made where missing; None keeps nothing.

    Raises:
        CheckpointUnreadable: pieces so long that rebuilding would take minutes.
    """
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
    """Ids (left, right, left, right, ...), the merge of the best piece first."""
    ids = {token: index for index, token in enumerate(facts.tokens)}
    normal = [index for index, kind in enumerate(facts.token_types) if kind == _NORMAL]
    work = sum(len(facts.tokens[index]) ** 2 for index in normal)
    if work > _WORK_LIMIT:
        raise CheckpointUnreadable(
            "The tokenizer's pieces are too long to be read as SPM.", found=work, limit=_WORK_LIMIT
        )
    normal.sort(key=lambda index: (-facts.scores[index], index))
    pieces = [facts.tokens[index] for index in normal]
    ranks = {piece: rank for rank, piece in enumerate(pieces)}
    pairs = array("I")
    for piece in pieces:
        joined = _last_join(piece, pieces, ranks)
        if joined is not None:
            left, right = ids.get(joined[0]), ids.get(joined[1])
            if left is not None and right is not None:
                pairs.append(left)
                pairs.append(right)
    return pairs


def _last_join(
    piece: str, pieces: Sequence[str], ranks: Mapping[str, int]
) -> tuple[str, str] | None:
    """The two parts that make up a piece in the end, None where it never comes together."""
    none = len(pieces)
    symbols = list(piece)
    found = [ranks.get(a + b, none) for a, b in pairwise(symbols)]
    while len(found) > 1:
        best = min(found)
        if best == none:
            return None
        at = found.index(best)
        symbols[at : at + 2] = [pieces[best]]
        del found[at]
        if at:
            found[at - 1] = ranks.get(symbols[at - 1] + symbols[at], none)
        if at < len(found):
            found[at] = ranks.get(symbols[at] + symbols[at + 1], none)
    return (symbols[0], symbols[1]) if found else None


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
def collector_paused() -> Iterator[None]:
    """Half a million live tuples would be walked again and again; none of them is a cycle."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
