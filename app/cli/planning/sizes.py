"""Sizes and GPUs as a person types them. Every refusal is an argparse.ArgumentTypeError."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction
from typing import Final

from engine.protocol import GpuFacts

MOST_BYTES: Final = 1 << 50
NAME_LIMIT: Final = 80
_SIZE: Final = re.compile(
    r"(\d{1,16}(?:\.\d{1,6})?)\s*([kmgt]i?b|b|bytes)?", re.IGNORECASE | re.ASCII
)
_POWERS: Final = {"k": 1, "m": 2, "g": 3, "t": 4}


def size_bytes(text: str) -> int:
    """``12GB`` (10^9 each), ``12GiB`` (2^30), ``11.6 GiB`` or a bare number of bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text.strip()!r} is no size; write it as 12GB, 11.6GiB or a number of bytes"
        )
    unit = (found[2] or "b").lower()
    base = 1024 if "i" in unit else 1000
    size = int(Fraction(found[1]) * base ** _POWERS.get(unit[0], 0))
    if size > MOST_BYTES:
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is more than any machine has")
    return size


def gpu(text: str) -> GpuFacts:
    """``name,total,free``; where ``free`` is left out, all of it is."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 2:
        parts.append(parts[1])
    if len(parts) != 3 or not parts[0]:
        raise argparse.ArgumentTypeError(
            f"{text!r} describes no GPU; write its name, memory and free memory, as "
            f'"RTX 4090,24GiB,23.1GiB"'
        )
    name, total, free = parts[0][:NAME_LIMIT], size_bytes(parts[1]), size_bytes(parts[2])
    if total == 0 or free > total:
        raise argparse.ArgumentTypeError(f"{name} cannot have {free:,} of {total:,} bytes free")
    return GpuFacts(name=name, total_bytes=total, free_bytes=free)
