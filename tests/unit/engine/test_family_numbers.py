"""Numbers of a file from which nothing can be computed are refused, not raised as arithmetic."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.checkpoint.gguf.checkpoint import GGUFCheckpoint
from engine.checkpoint.gguf.header import parse_header
from engine.checkpoint.gguf.split import joint_table
from engine.checkpoint.mapped import MappedFile
from engine.errors import CheckpointUnreadable
from engine.models import model_spec
from engine.models.spec import ModelSpec
from tests.fuzz.small_headers import small_images
from tests.helpers.gguf_edit import F64, Image, scalar, string

LLAMA, GEMMA3 = 3, 4


def _spec(image: Image) -> ModelSpec:
    raw = image.to_bytes()
    part = MappedFile(Path("x.gguf"), raw, parse_header(raw, "x.gguf"))
    return model_spec(GGUFCheckpoint([part], joint_table([part])))


def _image(family: int, key: str, value: bytes) -> Image:
    image = small_images()[family]
    image.set(f"{('llama', 'gemma3')[family - LLAMA]}.{key}", value)
    return image


@pytest.mark.parametrize("family", [LLAMA, GEMMA3])
@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("rope.freq_base", 1e-320),
        ("rope.scaling.yarn_beta_fast", 1e308),
        ("rope.scaling.yarn_beta_slow", 5e-324),
        ("rope.scaling.factor", 5e-324),
    ],
)
def test_rope_numbers_without_finite_angles_are_refused(
    family: int, key: str, number: float
) -> None:
    image = _image(family, key, scalar(F64, number))
    with pytest.raises(CheckpointUnreadable):
        _spec(image)


@pytest.mark.parametrize("family", [LLAMA, GEMMA3])
def test_odd_numbers_that_still_give_angles_are_read(family: int) -> None:
    """The control."""
    for key, number in (("rope.freq_base", 1.0000000000000002), ("rope.scaling.factor", 1e-3)):
        assert _spec(_image(family, key, scalar(F64, number))).layers


def test_a_sliding_base_that_is_no_number_is_refused() -> None:
    _spec(_image(GEMMA3, "rope.freq_base_swa", scalar(F64, 0.5)))
    with pytest.raises(CheckpointUnreadable):
        _spec(_image(GEMMA3, "rope.freq_base_swa", scalar(F64, float("nan"))))


def test_linear_scaling_to_infinity_is_refused() -> None:
    image = _image(LLAMA, "rope.scaling.type", string("linear"))
    image.set("llama.rope.scaling.factor", scalar(F64, 5e-324))
    with pytest.raises(CheckpointUnreadable, match="no finite angle"):
        _spec(image)
