"""A model's weights on a device keep every bit of the file, in exactly the planned bytes."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import CheckpointSource
from engine.errors import CheckpointUnreadable, InvariantBroken, MemoryRefused
from engine.forward import Weights
from engine.gpu.arena.pieces import model_pieces, pieces
from engine.gpu.arena.reading import reader_of
from engine.gpu.arena.segments import segments
from engine.gpu.arena.smalls import weight_bytes
from engine.gpu.arena.staging import Staging
from engine.gpu.arena.weights import GpuWeights
from engine.memory.ledger import Ledger
from engine.models import model_spec
from engine.models.spec import AttentionSpec, FeedForwardSpec, Linear, Norm
from kernels.packed.decode import decoded
from kernels.packed.layout import LAYOUTS
from kernels.packed.weight import DenseWeight, Weight
from tests.helpers.memory_source import tiny_source
from tests.helpers.stored_source import wide_source
from tests.helpers.tiny_gguf import write_script

CPU = torch.device("cpu")
MIXED = {
    "ffn_up": "q4_0",
    "ffn_gate": "q4_0",
    "ffn_down": "q8_0",
    "attn_q": "q5_1",
    "attn_v": "iq4_nl",
}


@contextmanager
def loaded(
    source: CheckpointSource, told: list[tuple[int, int]] | None = None
) -> Iterator[GpuWeights]:
    ledger = Ledger({"gpu0": 1 << 30})
    with GpuWeights(source, model_spec(source), CPU, ledger, "gpu0") as weights:
        weights.load(lambda *share: None if told is None else told.append(share))
        yield weights
    ledger.close()


def values(weight: Weight) -> torch.Tensor:
    return weight.values.float() if isinstance(weight, DenseWeight) else decoded(weight)


def joint(weights: GpuWeights, linears: Sequence[Linear]) -> torch.Tensor:
    """All rows of a joint product, and a check of where each part's columns begin."""
    parts, at = [], 0
    for part in weights.fused(linears):
        assert part.first == at
        at += part.weight.rows
        parts.append(values(part.weight))
    return torch.cat(parts)


def inputs(source: CheckpointSource) -> Iterator[tuple[Linear, ...]]:
    for layer in model_spec(source).layers:
        mixer, body = layer.mixer, layer.branches[0].body
        assert isinstance(mixer, AttentionSpec) and isinstance(body, FeedForwardSpec)
        own = (mixer.query, mixer.gate, mixer.key, mixer.value)
        yield tuple(linear for linear in own if linear is not None)
        yield (mixer.output,)
        yield body.gate, body.up
        yield (body.down,)


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_every_product_is_the_files_own_bit_for_bit(architecture: str) -> None:
    source = wide_source(architecture, formats=MIXED)
    reference = Weights(source)
    with loaded(source) as weights:
        for linears in inputs(source):
            expected = torch.cat([reference.linear(linear) for linear in linears])
            assert torch.equal(joint(weights, linears), expected)
        spec = model_spec(source)
        for name in (spec.embedding, spec.head):
            assert torch.equal(values(weights.matrix(name)), reference.linear(Linear(name)))


def test_neighbours_of_one_layout_are_one_weight_and_others_are_not() -> None:
    source = wide_source(formats=MIXED)
    attention, _, feed, _ = list(inputs(source))[:4]
    names = [
        [LAYOUTS["q5_1"], None, LAYOUTS["iq4_nl"]],
        [LAYOUTS["q4_0"]],
    ]
    found = [pieces(linears, source.tensors) for linears in (attention, feed)]
    assert [[piece.layout for piece in each] for each in found] == names


def test_the_arena_takes_the_bytes_that_are_planned_and_gives_them_back() -> None:
    source = wide_source(formats=MIXED)
    spec, ledger = model_spec(source), Ledger({"gpu0": 1 << 30})
    with GpuWeights(source, spec, CPU, ledger, "gpu0"):
        held = ledger.pool("gpu0").held_bytes
        assert held == weight_bytes(spec, source.tensors) > 0
    ledger.close()
    small = Ledger({"gpu0": held - 1})
    with pytest.raises(MemoryRefused, match="weights"):
        GpuWeights(source, spec, CPU, small, "gpu0")
    small.close()


def test_all_bytes_are_read_once_in_the_order_of_the_file_and_told() -> None:
    source = wide_source(formats=MIXED)
    told: list[tuple[int, int]] = []
    made = model_pieces(model_spec(source), source.tensors)
    wanted = segments(made, source.tensors, 500)
    places = [(each.facts.file, each.facts.offset, each.start) for each in wanted]
    assert places == sorted(places) and len(wanted) > len(made)
    rows = [0] * len(made)
    for each in wanted:
        assert each.rows * each.facts.shape[-1] <= max(500, each.facts.shape[-1])
        rows[each.piece] += each.rows
    assert rows == [piece.rows for piece in made]
    with loaded(source, told):
        total = sum(each.size_bytes for each in wanted)
        assert told[-1] == (total, total)
        assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_small_buffers_bring_the_same_bytes_as_large_ones() -> None:
    source = wide_source(formats=MIXED)
    wanted = segments(model_pieces(model_spec(source), source.tensors), source.tensors, 500)

    def brought(size: int) -> list[bytes]:
        with Staging(reader_of(source), CPU, size) as staging:
            return [
                b"".join(part.numpy().tobytes() for part in parts)
                for _, parts in staging.brought(wanted)
            ]

    expected = [
        b"".join(
            bytes(source.tensor_bytes(span.facts.name)[span.first : span.first + span.size])
            for span in each.spans
        )
        for each in wanted
    ]
    assert brought(1 << 20) == brought(4096) == expected


def test_what_has_no_product_is_kept_as_bf16_and_said(caplog: pytest.LogCaptureFixture) -> None:
    source = wide_source(formats={"ffn_down": "nvfp4"}, feed_forward_length=192)
    down = list(inputs(source))[3]
    with caplog.at_level(logging.INFO), loaded(source) as weights:
        (part,) = weights.fused(down)
        assert isinstance(part.weight, DenseWeight)
        expected = Weights(source).linear(down[0]).to(torch.bfloat16)
        assert torch.equal(part.weight.values, expected)
    assert "kept as bf16" in caplog.text and "nvfp4" in caplog.text


def test_a_norm_has_its_offset_and_is_made_once() -> None:
    source = tiny_source("gemma3")
    norm = model_spec(source).final_norm
    with loaded(source) as weights:
        shifted = Norm(norm.weight, norm.eps, norm.offset)
        found = weights.norm(shifted)
        assert torch.equal(found, Weights(source).norm(norm))
        assert weights.norm(norm) is found


def test_products_are_asked_for_in_the_company_they_were_laid_out_in() -> None:
    source = wide_source(formats=MIXED)
    gate, up = list(inputs(source))[2]
    with loaded(source) as weights, pytest.raises(InvariantBroken, match="another company"):
        weights.fused((up, gate))


def test_a_file_is_read_like_its_mapping_and_a_shorter_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_script(path, [" one"])
    with open_checkpoint(path) as source:
        wanted = segments(model_pieces(model_spec(source), source.tensors), source.tensors, 500)
        read = reader_of(source)
        for span in (span for each in wanted for span in each.spans):
            place = np.zeros(span.size, np.uint8)
            read(span, 0, place)
            stored = source.tensor_bytes(span.facts.name)
            assert bytes(place) == bytes(stored[span.first : span.first + span.size])
        last = max(wanted, key=lambda each: each.facts.offset).spans[0]
        os.truncate(path, last.facts.offset + 1)
        with pytest.raises(CheckpointUnreadable, match="shorter"):
            read(last, 0, np.zeros(last.size, np.uint8))
