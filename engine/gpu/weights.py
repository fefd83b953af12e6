"""A model's weights on a GPU: one arena, filled once, every value with the bits of the file.

Owns the arena, its lease, and the small tensors in float32. The source must stay open until
``load`` has ended. Used from the engine thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from engine.checkpoint.source import CheckpointSource, TensorFacts
from engine.errors import MemoryRefused
from engine.forward import Weights
from engine.gpu.pieces import Piece, model_pieces, pieces
from engine.gpu.staging import Staging
from engine.memory.ledger import Credit
from engine.models.spec import Linear, ModelSpec, Norm
from engine.owner import Owner
from kernels.packed.pack import pack, pack_mlx, rows_between
from kernels.packed.weight import DenseWeight, PackedWeight, Weight, packed_views
from kernels.quant.facts import FACTS

WEIGHTS: Final = "weights"
PART_BYTES: Final = 16 << 20
"""Of a file that are packed at a time."""
DTYPES: Final = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

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
        self._spec = spec
        self._device = device
        self._decoder = Weights(source)
        self._pieces = tuple(dict.fromkeys(model_pieces(spec, source.tensors)))
        size = sum(piece.size_bytes for piece in self._pieces)
        self._lease = ledger.reserve(WEIGHTS, {pool: size})
        try:
            self._arena = torch.empty(size, dtype=torch.uint8, device=device)
        except torch.OutOfMemoryError as error:
            self._lease.close()
            raise MemoryRefused(
                f"The weights take {size:,} bytes, which the GPU does not have any more.",
                pool=pool,
                needed_bytes=size,
            ) from error
        self._lease.commit()
        self._made = dict(self._laid_out())
        self._floats: dict[str, torch.Tensor] = {}

    def load(self, progress: Callable[[int, int], None]) -> None:
        """Read every weight from the files; ``progress`` is told bytes done and in all."""
        total = sum(self._stored_bytes(piece) for piece in self._pieces)
        done = 0
        with Staging(self._device, PART_BYTES) as staging:
            for piece in self._pieces:
                self._fill(piece, staging)
                done += self._stored_bytes(piece)
                progress(done, total)
        given_up = [piece for piece in self._pieces if piece.decoded]
        if given_up:
            size = sum(piece.size_bytes for piece in given_up)
            names = sorted({self._facts(piece).format for piece in given_up})
            _LOG.info("weights kept as bf16 bytes=%d formats=%s", size, ",".join(names))

    def fused(self, linears: Sequence[Linear]) -> tuple[FusedPart, ...]:
        """Products that read the same input, as few weights as their layouts allow, in order."""
        found, first = [], 0
        for piece in pieces(linears, self._source.tensors):
            weight = self._made[piece]
            found.append(FusedPart(weight, first, self._bias(piece)))
            first += weight.rows
        return tuple(found)

    def stack(self, linears: Sequence[Linear]) -> Weight:
        """The same projection of all experts, their rows one after another."""
        (part,) = self.fused(linears)
        return part.weight

    def matrix(self, name: str) -> Weight:
        """A whole tensor."""
        return self.stack([Linear(name)])

    def floats(self, linear: Linear) -> torch.Tensor:
        """A product's weight decoded: [rows, columns] float32."""
        return self._decoder.linear(linear).to(self._device)

    def vector(self, name: str) -> torch.Tensor:
        """A tensor decoded to [elements] float32, once."""
        return self._kept(name, lambda: self._decoder.vector(name))

    def norm(self, norm: Norm, width: int) -> torch.Tensor:
        """A norm's weight with its offset: [width] float32."""
        del width
        return self._kept(f"{norm.weight} + {norm.offset}", lambda: self._decoder.norm(norm))

    def taps(self, name: str, channels: int) -> torch.Tensor:
        """A depthwise convolution's weights: [size, channels] float32."""
        return self._kept(
            f"{name} by tap", lambda: self._decoder.whole(name).view(channels, -1).t().contiguous()
        )

    def decay(self, name: str, *, is_log: bool) -> torch.Tensor:
        """The factors of a delta rule's decay, negative: [heads] float32."""
        if not is_log:
            return self.vector(name)
        return self._kept(f"{name} as decay", lambda: -self._decoder.vector(name).exp())

    def close(self) -> None:
        """Free the arena and the small tensors; may be repeated."""
        self._made.clear()
        self._floats.clear()
        self._arena = torch.empty(0, dtype=torch.uint8)
        self._lease.close()

    def _kept(self, key: str, make: Callable[[], torch.Tensor]) -> torch.Tensor:
        if key not in self._floats:
            self._floats[key] = make().contiguous().to(self._device)
        return self._floats[key]

    def _laid_out(self) -> Iterator[tuple[Piece, Weight]]:
        """Views of the arena, piece after piece."""
        at = 0
        for piece in self._pieces:
            part = self._arena[at : at + piece.size_bytes]
            at += piece.size_bytes
            if piece.layout is not None:
                yield piece, packed_views(part, piece.layout, piece.rows, piece.columns)
                continue
            dtype = DTYPES[piece.dense]
            size = piece.rows * piece.columns * dtype.itemsize
            yield piece, DenseWeight(part[:size].view(dtype).view(piece.rows, piece.columns))

    def _bias(self, piece: Piece) -> torch.Tensor | None:
        """Biases of a piece's products, zeros where one of several has none."""
        if all(linear.bias is None for linear in piece.linears):
            return None
        parts = []
        for linear in piece.linears:
            runs = self._runs(linear)
            if linear.bias is None:
                parts.append(torch.zeros(sum(count for _, count in runs)))
                continue
            whole = self._decoder.vector(linear.bias)
            parts += [whole[first : first + count] for first, count in runs]
        return torch.cat(parts).to(self._device)

    def _facts(self, piece: Piece) -> TensorFacts:
        return self._source.tensors[piece.linears[0].weight]

    def _runs(self, linear: Linear) -> Sequence[tuple[int, int]]:
        facts = self._source.tensors[linear.weight]
        return linear.rows or ((0, int(np.prod(facts.shape[:-1]))),)

    def _stored_bytes(self, piece: Piece) -> int:
        facts = self._facts(piece)
        return int(facts.stored_bytes * piece.rows // np.prod(facts.shape[:-1]))

    def _fill(self, piece: Piece, staging: Staging) -> None:
        """Every row of a piece, part by part."""
        weight, at = self._made[piece], 0
        for facts, first, count in self._joined_runs(piece):
            row_bytes = FACTS[facts.format].row_bytes(piece.columns)
            at_once = max(1, PART_BYTES // max(row_bytes, 1))
            for start in range(first, first + count, at_once):
                rows = min(at_once, first + count - start)
                self._put(piece, weight, at, (facts, start, rows), staging)
                at += rows

    def _joined_runs(self, piece: Piece) -> Iterator[tuple[TensorFacts, int, int]]:
        """(tensor, first row, rows), neighbours in one tensor as one run."""
        name, first, count = "", 0, 0
        for linear in piece.linears:
            for start, rows in self._runs(linear):
                if (linear.weight, start) == (name, first + count):
                    count += rows
                    continue
                if count:
                    yield self._source.tensors[name], first, count
                name, first, count = linear.weight, start, rows
        yield self._source.tensors[name], first, count

    def _put(
        self,
        piece: Piece,
        weight: Weight,
        at: int,
        part: tuple[TensorFacts, int, int],
        staging: Staging,
    ) -> None:
        """Rows ``start .. start + rows`` of a tensor to rows ``at ..`` of a weight."""
        facts, start, rows = part
        match weight:
            case DenseWeight():
                target = weight.values[at : at + rows]
                if piece.decoded:
                    runs = ((start, rows),)
                    target.copy_(self._decoder.linear(Linear(facts.name, rows=runs)))
                else:
                    raw = staging.sent(self._rows(facts, start, rows))
                    target.copy_(raw.view(-1).view(target.dtype).view(target.shape))
            case PackedWeight():
                target_rows = rows_between(weight, at, at + rows)
                raw = staging.sent(self._rows(facts, start, rows))
                if facts.scales is None or facts.minima is None:
                    pack(facts.format, raw, target_rows)
                    return
                companions = [
                    torch.from_numpy(self._rows(each, start, rows).copy())
                    .view(target_rows.scales.dtype)
                    .to(self._device)
                    for each in (facts.scales, facts.minima)
                ]
                pack_mlx(raw, companions[0], companions[1], target_rows)

    def _rows(self, facts: TensorFacts, start: int, rows: int) -> NDArray[np.uint8]:
        """Stored rows as bytes: [rows, row_bytes], a view of the file."""
        stored = np.frombuffer(self._source.tensor_bytes(facts.name), dtype=np.uint8)
        by_row = stored.reshape(int(np.prod(facts.shape[:-1])), -1)
        return by_row[start : start + rows]
