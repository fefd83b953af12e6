"""JSON from strangers: parsed within limits, every refusal a sentence that names the file.

Python's parser takes a key twice, numbers of any length and text of any depth; here a key twice is
refused, and endless numbers and what is nested beyond Python's own limit too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NoReturn

from engine.checkpoint.labels import quoted
from engine.errors import CheckpointUnreadable

Json = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
_INT_LIMIT = 1 << 63
_INT_DIGITS = 20


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """How much is read.

    Attributes:
        size_bytes: of the text.
        values: bound on everything between commas and brackets, counted before parsing.
    """

    size_bytes: int
    values: int


class _Refused(ValueError):
    """A value is sound JSON but not taken."""


def parse_object(raw: bytes, label: str, limits: JsonLimits) -> dict[str, Json]:
    """The object that ``raw`` is the text of.

    Args:
        label: what to call the text in a sentence.

    Raises:
        CheckpointUnreadable: too large, not UTF-8, no JSON, no object, or a key twice.
    """
    if len(raw) > limits.size_bytes:
        found = f"has {len(raw)} bytes; at most {limits.size_bytes} are read"
        raise json_refusal(label, found)
    values = raw.count(b",") + raw.count(b"[") + raw.count(b"{") + raw.count(b":")
    if values > limits.values:
        raise json_refusal(label, f"has {values} values; at most {limits.values} are read")
    try:
        parsed: Json = json.loads(raw.decode("utf-8"), object_pairs_hook=_object, parse_int=_whole)
    except UnicodeDecodeError as error:
        raise json_refusal(label, f"is not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise json_refusal(label, "is nested too deeply") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise json_refusal(label, f"is no JSON at {place}: {error.msg}") from error
    except _Refused as error:
        raise json_refusal(label, str(error)) from error
    if not isinstance(parsed, dict):
        raise json_refusal(label, f"holds {kind_of(parsed)}, not an object")
    return parsed


def json_refusal(label: str, sentence: str) -> CheckpointUnreadable:
    """A typed error about a JSON text."""
    return CheckpointUnreadable(f"{label} {sentence}", file=label)


def kind_of(value: Json) -> str:
    """What a value is, for sentences: a short one is shown."""
    match value:
        case dict():
            return "an object"
        case list():
            return f"an array of {len(value)}"
        case str():
            return f"the text {quoted(value)}"
        case None:
            return "null"
        case _:
            return str(value).lower()


def is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: JSON can hold half a surrogate pair."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        _refuse_twice(pairs)
    return made


def _refuse_twice(pairs: list[tuple[str, Json]]) -> NoReturn:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            break
        seen.add(key)
    raise _Refused(f"has the key {quoted(key)} twice")


def _whole(digits: str) -> int | float:
    """What fits into 64 bits is whole; transformers writes 10 ** 30 where a text has no limit."""
    if len(digits) <= _INT_DIGITS:
        number = int(digits)
        if -_INT_LIMIT <= number < _INT_LIMIT:
            return number
    if len(digits) <= 2 * _INT_DIGITS:
        return float(digits)
    raise _Refused(f"has the number {digits[:_INT_DIGITS]}... of {len(digits)} digits")
