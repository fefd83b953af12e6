"""A model's weights on a GPU: one arena, filled once, every value with the bits of the file.

Owns the arena and its lease. The source must stay open as long as small tensors are asked for the
first time. Used from the engine thread only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from engine.checkpoint.source import CheckpointSource
from engine.errors import InvariantBroken
from engine.forward import Weights
from engine.gpu.arena.pieces import Piece, model_pieces, pieces, row_count, whole_piece
from engine.gpu.arena.placing import place
from engine.gpu.arena.reading import reader_of
from engine.gpu.arena.segments import segments
from engine.gpu.arena.smalls import (
    FLOAT_BYTES,
    bias_key,
    decay_key,
    floats_key,
    norm_key,
    small_bytes,
    smalls,
    taps_key,
    vector_key,
)
from engine.gpu.arena.staging import Staging
from engine.memory.allocation import allocating
from engine.memory.ledger import Credit
from engine.models.spec import Linear, ModelSpec, Norm
from engine.owner import Owner
from kernels.packed.weight import DenseWeight, Weight, packed_views

WEIGHTS: Final = "weights"
DTYPES: Final = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
REPORTS: Final = 200
"""Times that progress is told."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FusedPart:
    """One weight of a joint product.

    Attributes:
        first: column of the joint output where its own begin.
        bias: [rows] float32, None for none.
    """

    weight: Weight
    first: int
    bias: torch.Tensor | None


class GpuWeights(Owner):
    """Hands out weights and small tensors of one model."""

    def __init__(
        self,
        source: CheckpointSource,
        spec: ModelSpec,
        device: torch.device,
        ledger: Credit,
        pool: str,
    ) -> None:
        """Reserve and allocate the arena; raises MemoryRefused."""
        self._source = source
        self._device = device
        self._decoder = Weights(source)
        self._pieces = model_pieces(spec, source.tensors)
        counts = smalls(spec, source.tensors, self._pieces)
        places = [piece.size_bytes for piece in self._pieces]
        places += map(small_bytes, counts.values())
        self._lease = ledger.reserve(WEIGHTS, {pool: sum(places)})
        with allocating(self._lease, device):
            arena = torch.empty(sum(places), dtype=torch.uint8, device=device)
        parts = torch.split(arena, places)
        self._made = {
            piece: weight_of(piece, part)
            for piece, part in zip(self._pieces, parts[: len(self._pieces)], strict=True)
        }
        self._rooms = dict(zip(counts, parts[len(self._pieces) :], strict=True))
        self._smalls: dict[str, torch.Tensor] = {}

    def load(self, progress: Callable[[int, int], None]) -> None:
        """Read every weight from the files; ``progress`` is told bytes done and in all."""
        wanted = segments(self._pieces, self._source.tensors)
        total, done, said = sum(each.size_bytes for each in wanted), 0, 0
        began = time.monotonic()
        with Staging(reader_of(self._source), self._device) as staging:
            for segment, parts in staging.brought(wanted):
                piece = self._pieces[segment.piece]
                place(segment, parts, self._made[piece], decoded=piece.decoded)
                done += segment.size_bytes
                if done >= min(said + total // REPORTS, total):
                    said = done
                    progress(done, total)
        if self._device.type == "cuda":
            torch.cuda.empty_cache()  # what packing took is not needed again
        _LOG.info("weights loaded bytes=%d seconds=%.2f", total, time.monotonic() - began)
        self._tell_decoded()

    def fused(self, linears: Sequence[Linear]) -> tuple[FusedPart, ...]:
        """Products that read the same input, as few weights as their layouts allow, in order."""
        found, first = [], 0
        for piece in pieces(linears, self._source.tensors):
            weight = self._weight(piece)
            found.append(FusedPart(weight, first, self._bias(piece) if piece.has_bias else None))
            first += weight.rows
        return tuple(found)

    def stack(self, linears: Sequence[Linear]) -> Weight:
        """The same projection of all experts, their rows one after another."""
        return self._weight(whole_piece(linears, self._source.tensors))

    def matrix(self, name: str) -> Weight:
        """A whole tensor."""
        return self.stack([Linear(name)])

    def floats(self, linear: Linear, factor: float = 1.0) -> torch.Tensor:
        """A product's weight decoded, times a factor: [rows, columns] float32."""
        return self._kept(floats_key(linear), lambda: self._decoder.linear(linear) * factor)

    def vector(self, name: str) -> torch.Tensor:
        """A tensor decoded to [elements] float32."""
        return self._kept(vector_key(name), lambda: self._decoder.vector(name))

    def norm(self, norm: Norm) -> torch.Tensor:
        """A norm's weight with its offset: [width] float32."""
        return self._kept(norm_key(norm), lambda: self._decoder.norm(norm))

    def taps(self, name: str, channels: int) -> torch.Tensor:
        """A depthwise convolution's weights: [size, channels] float32."""
        return self._kept(taps_key(name), lambda: self._decoder.whole(name).view(channels, -1).t())

    def decay(self, name: str, *, is_log: bool) -> torch.Tensor:
        """The factors of a delta rule's decay, negative: [heads] float32."""
        if not is_log:
            return self.vector(name)
        key = decay_key(name, is_log=True)
        return self._kept(key, lambda: -self._decoder.vector(name).exp())

    def close(self) -> None:
        """Free the arena; may be repeated."""
        self._made.clear()
        self._rooms.clear()
        self._smalls.clear()
        self._lease.close()

    def _weight(self, piece: Piece) -> Weight:
        found = self._made.get(piece)
        if found is None:
            raise InvariantBroken(f"{piece.linears[0].weight} was laid out in another company.")
        return found

    def _kept(self, key: str, make: Callable[[], torch.Tensor]) -> torch.Tensor:
        """A small tensor, made when it is first asked for."""
        found = self._smalls.get(key)
        if found is None:
            values = make()
            room = self._rooms[key][: FLOAT_BYTES * values.numel()]
            found = room.view(torch.float32).view(values.shape)
            found.copy_(values)
            self._smalls[key] = found
        return found

    def _bias(self, piece: Piece) -> torch.Tensor:
        """Biases of a piece's products, zeros where one of several has none."""

        def make() -> torch.Tensor:
            return torch.cat([part for linear in piece.linears for part in self._biases(linear)])

        return self._kept(bias_key(piece), make)

    def _biases(self, linear: Linear) -> Iterator[torch.Tensor]:
        runs = linear.rows or ((0, row_count(linear, self._source.tensors)),)
        if linear.bias is None:
            yield torch.zeros(sum(count for _, count in runs))
            return
        whole = self._decoder.vector(linear.bias)
        for first, count in runs:
            yield whole[first : first + count]

    def _tell_decoded(self) -> None:
        decoded = [piece for piece in self._pieces if piece.decoded]
        if decoded:
            size = sum(piece.size_bytes for piece in decoded)
            tensors = self._source.tensors
            names = {tensors[each.weight].format for piece in decoded for each in piece.linears}
            formats = ",".join(sorted(names))
            _LOG.info("weights kept as bf16 bytes=%d formats=%s", size, formats)


def weight_of(piece: Piece, part: torch.Tensor) -> Weight:
    """A piece's share of the arena, as a weight of views of it."""
    if piece.layout is not None:
        return packed_views(part, piece.layout, piece.rows, piece.columns)
    dtype = DTYPES[piece.dense]
    size = piece.rows * piece.columns * dtype.itemsize
    return DenseWeight(part[:size].view(dtype).view(piece.rows, piece.columns))
