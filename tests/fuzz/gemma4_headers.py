"""Small sound GGUF files of gemma4: seeds of the mutants.

One with layers that share K and V and have inputs of their own, one with experts and without
values. The numbers are wide, so that extremes reach them.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.checkpoint.source import MetadataValue
from tests.helpers.gemma4_sources import Tiny, divisors, gguf_keys, gguf_shapes
from tests.helpers.gguf_edit import BOOL, F64, U64, Image, Line, array, scalar, string

SEEDS = (
    Tiny("SFSF", shared=2, per_layer=True, wide=True),
    Tiny("SF", bare=True, mixture=True),
)


def gemma4_images() -> list[Image]:
    """One file a kind."""
    return [_image(tiny) for tiny in SEEDS]


def _image(tiny: Tiny) -> Image:
    image = Image()
    image.set("general.architecture", string("gemma4"))
    for key, value in gguf_keys(tiny).items():
        image.set(f"gemma4.{key}", _stored(value))
    image.tensors = [
        *(_line(name, shape) for name, shape in gguf_shapes(tiny).items()),
        Line(b"rope_freqs.weight", (8,), 0, divisors().tobytes()),
    ]
    return image


def _stored(value: MetadataValue) -> bytes:
    if isinstance(value, float):
        return scalar(F64, value)
    if isinstance(value, int):
        return scalar(U64, value)
    assert isinstance(value, Sequence) and not isinstance(value, str)
    numbers = [entry for entry in value if isinstance(entry, int)]
    return array(BOOL if isinstance(numbers[0], bool) else U64, numbers)


def _line(name: str, shape: tuple[int, ...]) -> Line:
    elements = 1
    for size in shape:
        elements *= size
    return Line(name.encode(), shape[::-1], 0, bytes(4 * elements))
