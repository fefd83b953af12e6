"""The fixed-seed part of the mutated GGUF headers; the long counts run by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.checkpoint.gguf.checkpoint import GGUFCheckpoint
from engine.checkpoint.gguf.header import parse_header
from engine.checkpoint.gguf.split import joint_table
from engine.checkpoint.mapped import MappedFile
from engine.checkpoint.source import CheckpointSource
from engine.errors import CheckpointUnreadable
from engine.models import model_spec
from tests.fuzz.gemma4_headers import gemma4_images
from tests.fuzz.gguf_mutants import Tally, judge, run_real, run_small
from tests.fuzz.hybrid_headers import hybrid_images
from tests.helpers.gguf_edit import Image

FAMILIES = {"consistent", "checkpoint-unreadable", "unsupported-format"}


def _assert_clean(tally: Tally, count: int) -> None:
    assert not tally.findings, tally.findings[0][1]
    assert not tally.failed
    assert tally.outcomes.keys() == FAMILIES
    assert tally.outcomes.total() == count


@pytest.mark.parametrize("image", hybrid_images())
def test_the_seeds_of_hybrid_models_are_whole(image: Image) -> None:
    """A refused seed would leave the family's reader unread."""
    raw = image.to_bytes()
    part = MappedFile(Path("seed.gguf"), raw, parse_header(raw, "seed.gguf"))
    spec = model_spec(GGUFCheckpoint([part], joint_table([part])))
    assert len(spec.layers) == 2
    assert spec.recurrent is not None and spec.attentions
    assert "draft layer" in spec.notes[0]


@pytest.mark.parametrize("image", gemma4_images())
def test_the_seeds_of_gemma4_are_whole(image: Image) -> None:
    raw = image.to_bytes()
    part = MappedFile(Path("seed.gguf"), raw, parse_header(raw, "seed.gguf"))
    spec = model_spec(GGUFCheckpoint([part], joint_table([part])))
    assert len(spec.groups) == 2
    assert spec.notes == ()
    assert (spec.per_layer is None) is (len(spec.layers[0].branches) == 2)


def test_20000_mutated_small_headers_give_typed_errors_or_consistent_files() -> None:
    _assert_clean(run_small(20_000, seed=1), 20_000)


def test_60_mutated_real_headers_give_typed_errors_or_consistent_files() -> None:
    _assert_clean(run_real(60, seed=1), 60)


def _raise(error: Exception) -> Callable[[], CheckpointSource]:
    def opening() -> CheckpointSource:
        raise error

    return opening


@pytest.mark.parametrize("error", [ValueError("x"), MemoryError(), RecursionError(), KeyError("x")])
def test_an_error_without_a_type_of_ours_is_a_finding(error: Exception) -> None:
    """The control: the run sees what it looks for."""
    tally = Tally()
    judge(_raise(error), 7, tally)
    assert tally.failed
    assert tally.findings[0][0] == 7
    judge(_raise(CheckpointUnreadable("x")), 8, tally)
    assert len(tally.findings) == 1
