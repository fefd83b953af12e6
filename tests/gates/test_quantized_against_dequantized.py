"""Quantized files give the logits of their own dequantized weights.

The weights of a GGUF file are decoded by gguf-py and computed by transformers in float32; ours are
the float32 executor, which may differ by rounding alone, and the native library, whose activations
are codes and whose keys and values are fp16. Q8_0 and f16 come from llama.cpp's converter, the
other formats are random valid blocks by a seed, every format in turn through the matrices of a
file, so that one projection mixes formats with the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from engine.checkpoint.open import open_checkpoint
from engine.native import unsupported_by_native
from tests.helpers.checkpoints.blocks import with_random_blocks
from tests.helpers.checkpoints.conversion import ToGguf, to_gguf
from tests.helpers.checkpoints.dequantized import dequantized, numbered
from tests.helpers.checkpoints.routing import decided_rows
from tests.helpers.checkpoints.saving import save_published
from tests.helpers.checkpoints.shapes import BLOCKS_OF_32, BLOCKS_OF_256, ODD, Widths
from tests.helpers.checkpoints.variants import VARIANTS, make, random_ids, reference_logits
from tests.helpers.lone_model import LoneModel, relative_l2
from tests.helpers.native_model import NativeSide, prompt, steps

FLOAT32_LIMIT = 1e-4
NATIVE_LIMIT = 1e-2
EXPERT_MARGIN = 0.02
"""A row that chooses between two experts by less may choose otherwise when activations are coded;
such a row is another one then, and is left out."""
PROMPT_ROWS, ROWS = 270, 290
FAMILIES = tuple(name for name, variant in VARIANTS.items() if variant.in_gguf)
OF_256 = ("llama", "qwen3_5_moe", "gemma4 per layer")
"""Every kind of matrix there is, in formats whose blocks are 256 wide."""
FORMATS_OF_32 = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4")
FORMATS_OF_256 = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs", "mxfp4", "q8_0")
CASES = (
    *((name, "f16, odd widths") for name in FAMILIES),
    *((name, "q8_0") for name in FAMILIES),
    *((name, "blocks of 32") for name in FAMILIES),
    *((name, "blocks of 256") for name in OF_256),
)


@dataclass(frozen=True)
class Numbered:
    """One variant at one set of widths: a file of it, and the one that says where weights went."""

    widths: Widths
    path: Path
    numbers: Path


Files = Mapping[tuple[str, str], Numbered]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """All files, converted at once."""
    root = tmp_path_factory.mktemp("quantized")
    found: dict[tuple[str, str], Numbered] = {}
    orders: list[ToGguf] = []
    for kind, widths, names, stored in (
        ("f16, odd widths", ODD, FAMILIES, "f16"),
        ("q8_0", BLOCKS_OF_32, FAMILIES, "q8_0"),
        ("blocks of 256", BLOCKS_OF_256, OF_256, "q8_0"),
    ):
        for name in names:
            folder = root / f"{name}-{kind}".replace(" ", "-").replace(",", "")
            one = Numbered(widths, folder / "tiny.gguf", folder / "numbers.gguf")
            found[name, kind] = one
            save_published(name, make(name, widths), folder / "saved")
            save_published(name, numbered(name, widths), folder / "numbers")
            orders.append(ToGguf(str(folder / "saved"), str(one.path), stored))
            orders.append(ToGguf(str(folder / "numbers"), str(one.numbers)))
    to_gguf(orders)
    return found | _random(found)


def _random(converted: Files) -> dict[tuple[str, str], Numbered]:
    found = {}
    for (name, kind), one in converted.items():
        if kind != "f16, odd widths":
            path = one.path.with_name("random.gguf")
            of_32 = one.widths is BLOCKS_OF_32
            with_random_blocks(one.path, path, FORMATS_OF_32 if of_32 else FORMATS_OF_256)
            found[name, "blocks of 32" if of_32 else kind] = Numbered(one.widths, path, one.numbers)
    return found


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_logits_are_those_of_the_dequantized_weights(name: str, kind: str, files: Files) -> None:
    """A prompt over two pages and the rows after it, in both executors."""
    one = files[name, kind]
    ids = random_ids(ROWS)
    reference = dequantized(name, one.widths, one.path, one.numbers)
    wanted = reference_logits(reference, ids)
    assert relative_l2(by_float32(one.path, ids), wanted) <= FLOAT32_LIMIT
    found = by_native(one.path, ids)
    if found is not None:
        decided = decided_rows(reference, ids, EXPERT_MARGIN)
        assert decided.float().mean() > 0.7
        assert relative_l2(found[decided], wanted[decided]) <= NATIVE_LIMIT


def test_weights_before_quantization_are_seen_as_others(files: Files) -> None:
    """Control: the reference is of the file's weights, not of those it was made from."""
    one = files["qwen3", "q8_0"]
    ids = random_ids(ROWS)
    before: PreTrainedModel = make("qwen3", one.widths)
    assert relative_l2(by_float32(one.path, ids), reference_logits(before, ids)) > 1e-3


def by_float32(path: Path, ids: list[int]) -> torch.Tensor:
    """[row, vocabulary]: prompt rows, then steps."""
    with LoneModel(path, len(ids)) as model:
        first = model.all_logits(ids[:PROMPT_ROWS])
        return torch.cat([first, *(model.step(token)[None] for token in ids[PROMPT_ROWS:])])


def by_native(path: Path, ids: list[int]) -> torch.Tensor | None:
    """The same of the native library; None where it does not run this file."""
    with open_checkpoint(path) as source:
        with LoneModel(path, 1) as model:
            if unsupported_by_native(model.spec) is not None:
                return None
        with NativeSide(source, len(ids)) as side, side.lane() as lane:
            return torch.cat(
                [prompt(side, lane, ids[:PROMPT_ROWS]), steps(side, lane, ids[PROMPT_ROWS:])]
            )
