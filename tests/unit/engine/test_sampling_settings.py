"""Settings come from the wish, the checkpoint or the fallback, and senseless ones are named."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from engine.checkpoint.source import GenerationDefaults
from engine.errors import RequestInvalid
from engine.protocol import Sampling
from engine.sampling.penalties import Penalties, PenaltyRule
from engine.sampling.settings import FALLBACK, SEED_LIMIT, resolve_settings


def test_each_value_comes_from_the_wish_else_the_checkpoint_else_the_fallback() -> None:
    checkpoint = GenerationDefaults(temperature=0.6, top_k=20)
    found = resolve_settings(Sampling(temperature=0.0, stop=("x",)), checkpoint)
    assert (found.temperature, found.top_k) == (0.0, 20)
    assert (found.top_p, found.min_p) == (FALLBACK.top_p, FALLBACK.min_p)
    assert (found.seed, found.max_tokens, found.stop) == (None, None, ("x",))


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"temperature": -1.0}, "temperature must be 0 or more, not -1"),
        ({"temperature": math.nan}, "temperature must be 0 or more, not nan"),
        ({"temperature": math.inf}, "temperature must be 0 or more, not inf"),
        ({"top_k": -1}, "top-k must be 0 or more, not -1"),
        ({"top_p": 1.5}, "top-p must be from 0 to 1, not 1.5"),
        ({"top_p": math.nan}, "top-p"),
        ({"min_p": -0.1}, "min-p must be from 0 to 1, not -0.1"),
        ({"repetition_penalty": 0.0}, "repetition penalty must be from 0.01 to 100, not 0"),
        ({"presence_penalty": math.inf}, "presence penalty must be from -100 to 100"),
        ({"frequency_penalty": -101.0}, "frequency penalty"),
        ({"seed": -1}, "seed must be from 0 to 9223372036854775807, not -1"),
        ({"seed": SEED_LIMIT}, "seed"),
        ({"max_tokens": -1}, "max-tokens must be 0 or more, not -1"),
        ({"stop": ("",)}, "A stop string has 0 characters"),
        ({"stop": ("x" * 5000,)}, "A stop string has 5000 characters"),
        ({"stop": ("x",) * 65}, "65 stop strings are too many"),
    ],
)
def test_a_senseless_wish_is_one_sentence_that_names_it(wish: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        resolve_settings(Sampling(**wish), GenerationDefaults())
    assert words in refused.value.sentence
    assert refused.value.sentence.endswith(".")


def test_a_senseless_recommendation_of_the_checkpoint_is_refused_alike() -> None:
    with pytest.raises(RequestInvalid, match="temperature"):
        resolve_settings(Sampling(), GenerationDefaults(temperature=-1.0))
    resolve_settings(Sampling(temperature=1.0), GenerationDefaults(temperature=-1.0))


@pytest.mark.parametrize("value", [0.0, 1e-38, 1e6])
def test_extreme_temperatures_that_make_sense_are_allowed(value: float) -> None:
    assert resolve_settings(Sampling(temperature=value), GenerationDefaults()).temperature == value


def test_repetition_divides_positive_and_multiplies_negative_logits_of_prompt_and_reply() -> None:
    penalties = Penalties(PenaltyRule(repetition=2.0), [0, 1, 1], [])
    penalties.count(2)
    logits = np.array([4.0, -4.0, 1.0, 3.0], np.float32)
    penalties.apply(logits)
    assert logits.tolist() == [2.0, -8.0, 0.5, 3.0]


def test_presence_and_frequency_look_at_the_reply_alone() -> None:
    penalties = Penalties(PenaltyRule(presence=1.0, frequency=0.5), [3], [])
    for token in (0, 1, 1, 1):
        penalties.count(token)
    logits = np.zeros(4, np.float32)
    penalties.apply(logits)
    assert logits.tolist() == [-1.5, -2.5, 0.0, 0.0]


def test_suppressed_tokens_are_excluded_and_neutral_penalties_change_nothing() -> None:
    penalties = Penalties(PenaltyRule(), [0, 1, 2], [2])
    penalties.count(1)
    logits = np.array([0.1, 0.2, 0.3], np.float32)
    penalties.apply(logits)
    assert logits.tolist() == [np.float32(0.1), np.float32(0.2), -np.inf]
