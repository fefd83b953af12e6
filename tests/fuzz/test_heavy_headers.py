"""The heaviest headers that are still legal stay within the memory that one may cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from tests.fuzz.gguf_mutants import MEMORY_LIMIT_KB
from tests.fuzz.small_headers import small_images
from tests.helpers.gguf_edit import STRING, U8, Image, Line, array, nested, string

_MEASURE = """
import sys
from pathlib import Path
from engine.checkpoint.open import open_checkpoint
from tests.fuzz.gguf_mutants import examine, peak_kb, start_peak
before = start_peak()
examine(open_checkpoint(Path(sys.argv[1])))
print(peak_kb() - before)
"""


def _words(image: Image) -> None:
    """Both word tables full; two bytes a letter make a str cost the most for its bytes."""
    image.remove("tokenizer.ggml.token_type")
    for key, count in (("tokens", 1 << 19), ("merges", 1 << 20)):
        words = b"".join(pack("<Q", 9) + f"é{n:07}".encode() for n in range(count))
        image.set(f"tokenizer.ggml.{key}", pack("<IIQ", 9, STRING, count) + words)


def _long_texts(image: Image) -> None:
    """One wide letter makes all others of its text four bytes wide."""
    image.keys += [(b"k%d" % n, string("\U0001f600" + "y" * (15 << 20))) for n in range(2)]


def _many_keys(image: Image) -> None:
    image.keys += [(b"k%d" % n + b"x" * 100, string("é" * 180)) for n in range(60_000)]


def _many_tensors(image: Image) -> None:
    image.tensors = [Line(b"t%d" % n + b"x" * 200, (1,) * 4, 0, bytes(4)) for n in range(65_536)]


def _many_arrays(image: Image) -> None:
    image.set("x", nested([array(U8, [])] * 65_536))


@pytest.mark.parametrize("grow", [_words, _long_texts, _many_keys, _many_tensors, _many_arrays])
def test_the_heaviest_legal_header_costs_less_than_200_mb(
    tmp_path: Path, grow: Callable[[Image], None]
) -> None:
    image = small_images()[1]
    grow(image)
    path = image.write(tmp_path / "heavy.gguf")
    found = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(path)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert 0 < int(found.stdout) < MEMORY_LIMIT_KB
