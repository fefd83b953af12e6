"""Sampling settings: what a request asks for, completed by the checkpoint and checked.

Pure. Every value that makes no sense is a RequestInvalid that names it, wherever it came from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from engine.checkpoint.source import GenerationDefaults
from engine.errors import RequestInvalid
from engine.protocol import Sampling
from engine.sampling.penalties import PenaltyRule

FALLBACK: Final = GenerationDefaults(temperature=0.7, top_k=40, top_p=0.95, min_p=0.05)
SEED_LIMIT: Final = 1 << 63
STOP_LIMIT: Final = 64
STOP_CHARACTERS: Final = 4096


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """Checked settings of one request; ``seed`` None is to be derived from the prompt.

    ``max_tokens`` None runs to the context's end.
    """

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    penalties: PenaltyRule
    seed: int | None
    max_tokens: int | None
    stop: tuple[str, ...]


def resolve_settings(wish: Sampling, defaults: GenerationDefaults) -> DrawSettings:
    """Take each value from the wish, else the checkpoint, else FALLBACK; raises RequestInvalid."""
    _check_stop(wish.stop)
    return DrawSettings(
        temperature=_within(
            "temperature", _first("temperature", wish, defaults), 0.0, math.inf, "0 or more"
        ),
        top_k=_whole("top-k", int(_first("top_k", wish, defaults)), None),
        top_p=_share("top-p", _first("top_p", wish, defaults)),
        min_p=_share("min-p", _first("min_p", wish, defaults)),
        penalties=PenaltyRule(
            repetition=_within(
                "repetition penalty", wish.repetition_penalty, 0.01, 100.0, "from 0.01 to 100"
            ),
            presence=_within(
                "presence penalty", wish.presence_penalty, -100.0, 100.0, "from -100 to 100"
            ),
            frequency=_within(
                "frequency penalty", wish.frequency_penalty, -100.0, 100.0, "from -100 to 100"
            ),
        ),
        seed=None if wish.seed is None else _whole("seed", wish.seed, SEED_LIMIT),
        max_tokens=None if wish.max_tokens is None else _whole("max-tokens", wish.max_tokens, None),
        stop=wish.stop,
    )


def _first(name: str, wish: Sampling, defaults: GenerationDefaults) -> float:
    values: list[float | None] = [getattr(source, name) for source in (wish, defaults, FALLBACK)]
    return next(value for value in values if value is not None)


def _within(name: str, value: float, least: float, most: float, allowed: str) -> float:
    """A finite number in [least, most]; a comparison with nan is never true."""
    if not (least <= value <= most and math.isfinite(value)):
        raise RequestInvalid(f"The {name} must be {allowed}, not {value:g}.", found=str(value))
    return value


def _share(name: str, value: float) -> float:
    return _within(name, value, 0.0, 1.0, "from 0 to 1")


def _whole(name: str, value: int, limit: int | None) -> int:
    """A whole number from 0 to below ``limit``."""
    if value < 0 or (limit is not None and value >= limit):
        allowed = "0 or more" if limit is None else f"from 0 to {limit - 1}"
        raise RequestInvalid(f"The {name} must be {allowed}, not {value}.", found=str(value))
    return value


def _check_stop(stop: tuple[str, ...]) -> None:
    if len(stop) > STOP_LIMIT:
        raise RequestInvalid(
            f"{len(stop)} stop strings are too many; {STOP_LIMIT} are allowed.", found=len(stop)
        )
    for text in stop:
        if not 0 < len(text) <= STOP_CHARACTERS:
            raise RequestInvalid(
                f"A stop string has {len(text)} characters; 1 to {STOP_CHARACTERS} are allowed.",
                found=len(text),
            )
