"""Digests of what reference tokenizers make of the thousand strings, kept small in one file.

A reference's ids, a line a string, become its entry in ``tests/data/token_digests.json``:

    python -m tests.helpers.token_references NAME "SOURCE" < ids.txt
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from struct import pack
from zlib import crc32

from tests.helpers.strings import COUNT

FILE = Path(__file__).parents[1] / "data" / "token_digests.json"
_DIGITS = 8


def digest(ids: Sequence[int]) -> str:
    """CRC-32 of the ids as little-endian 32-bit numbers, in hexadecimal."""
    return f"{crc32(pack(f'<{len(ids)}I', *ids)):0{_DIGITS}x}"


def stored_digests(name: str) -> list[str]:
    """One a string, as the reference of that name gave it."""
    kept: str = json.loads(FILE.read_text("utf-8"))[name]["digests"]
    return [kept[place : place + _DIGITS] for place in range(0, len(kept), _DIGITS)]


def store(name: str, source: str, lines: Iterable[str]) -> None:
    """Put a reference's ids into the file."""
    found = [digest([int(word) for word in line.split()]) for line in lines]
    assert len(found) == COUNT, len(found)
    kept = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    kept[name] = {"source": source, "digests": "".join(found)}
    FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    store(sys.argv[1], sys.argv[2], sys.stdin)
