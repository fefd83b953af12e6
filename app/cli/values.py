"""What the command line's options take: text to values; argparse tells what is refused."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Final

SEED_LIMIT: Final = 1 << 63
MOST_CHATS: Final = 64


def folder(text: str) -> Path:
    """A folder's name; an empty one is none."""
    if not text:
        raise argparse.ArgumentTypeError("an empty name is no folder")
    return Path(text)


def temperature(text: str) -> float:
    """A finite number from 0 up."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return value


def seed(text: str) -> int:
    """A whole number that fits into 63 bits."""
    value = _whole(text)
    if not 0 <= value < SEED_LIMIT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return value


def count(text: str) -> int:
    """A whole number from 0 up."""
    value = _whole(text)
    if not 0 <= value < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return value


def context(text: str) -> int:
    """A whole number from 1 up; thousands may be set apart by commas."""
    value = _whole(text.replace(",", ""))
    if not 1 <= value < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return value


def chats(text: str) -> int:
    """How many chats at once."""
    value = _whole(text)
    if not 1 <= value <= MOST_CHATS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST_CHATS}")
    return value


def positive(text: str) -> int:
    """A whole number from 1 to 1000."""
    value = _whole(text)
    if not 1 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return -1
