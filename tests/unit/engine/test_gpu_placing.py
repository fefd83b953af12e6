"""Whatever form a file has its weights in, they reach the device as the reference decodes them."""

from __future__ import annotations

import pytest
import torch

from engine.checkpoint.source import CheckpointSource, Dialect
from engine.forward import Weights
from engine.gpu.arena.pieces import Piece, whole_piece
from engine.gpu.arena.placing import place
from engine.gpu.arena.reading import reader_of
from engine.gpu.arena.segments import segments
from engine.gpu.arena.staging import Staging
from engine.gpu.arena.weights import GpuWeights, weight_of
from engine.memory.ledger import Ledger
from engine.models import model_spec
from engine.models.spec import DeltaSpec, ExpertsSpec, Linear, RowRuns
from kernels.packed.decode import decoded
from kernels.packed.weight import DenseWeight, Weight
from tests.helpers.joined_source import DECODED, NAME, STRIPPED, Joined, JoinedSource
from tests.helpers.qwen_sources import MIXED, source

CPU = torch.device("cpu")
RUNS: tuple[RowRuns | None, ...] = (None, ((37, 37),), ((100, 4), (3, 2), (30, 20)))


def laid_out(source: CheckpointSource, piece: Piece, elements: int) -> Weight:
    """A piece alone, in memory that was full of NaN."""
    weight = weight_of(piece, torch.full((piece.size_bytes,), 255, dtype=torch.uint8))
    with Staging(reader_of(source), CPU, 1 << 20) as staging:
        for segment, parts in staging.brought(segments([piece], source.tensors, elements)):
            place(segment, parts, weight, decoded=piece.decoded)
    return weight


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("how", [*STRIPPED, DECODED], ids=str)
def test_codes_with_scales_apart_are_the_reference_s_values(
    how: Joined, runs: RowRuns | None
) -> None:
    source, linear = JoinedSource(how, 256), Linear(NAME, None, runs)
    piece = whole_piece([linear], source.tensors)
    expected = Weights(source).linear(linear)
    for elements in (1 << 20, 256 * 5):
        weight = laid_out(source, piece, elements)
        if isinstance(weight, DenseWeight):
            assert piece.decoded and torch.equal(weight.values, expected.to(torch.bfloat16))
        else:
            assert how.format in ("mlx4", "mlx8") and torch.equal(decoded(weight), expected)


def test_four_and_eight_bits_of_mlx_are_packed_and_what_has_odd_rows_is_not() -> None:
    packed = {
        how.format
        for how in STRIPPED
        if not whole_piece([Linear(NAME)], JoinedSource(how, 256).tensors).decoded
    }
    assert packed == {"mlx4", "mlx8"}
    odd = JoinedSource(Joined("mlx4", (1, 64), "f16", minima=True), 96)
    assert whole_piece([Linear(NAME)], odd.tensors).decoded


@pytest.mark.parametrize("dialect", [Dialect.PUBLISHED, Dialect.GGUF])
def test_experts_are_stacks_and_small_tensors_are_the_reference_s(dialect: Dialect) -> None:
    made = source(MIXED, dialect)
    spec, reference, ledger = model_spec(made), Weights(made), Ledger({"gpu0": 1 << 30})
    with GpuWeights(made, spec, CPU, ledger, "gpu0") as weights:
        weights.load(lambda _done, _total: None)
        for layer in spec.layers:
            body = layer.branches[0].body
            assert isinstance(body, ExpertsSpec)
            for part in ("gate", "up", "down"):
                linears = [getattr(expert, part) for expert in body.experts]
                stack = weights.stack(linears)
                assert isinstance(stack, DenseWeight)
                assert torch.equal(
                    stack.values.float(), torch.cat([reference.linear(each) for each in linears])
                )
            router = weights.floats(body.router, 0.5)
            assert torch.equal(router, reference.linear(body.router) * 0.5)
            mixer = layer.mixer
            if isinstance(mixer, DeltaSpec):
                taps = reference.whole(mixer.convolution).view(mixer.channels, -1).t()
                assert torch.equal(weights.taps(mixer.convolution, mixer.channels), taps)
                decay = weights.decay(mixer.decay, is_log=mixer.decay_is_log)
                assert (decay < 0).all()
                assert torch.equal(
                    weights.vector(mixer.time_bias), reference.vector(mixer.time_bias)
                )
    ledger.close()
