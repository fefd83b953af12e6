"""The tensors of a published checkpoint: plain ones, and codes joined with their scales.

Joined tensors appear once, by the name and the shape of what they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.checkpoint.labels import file_label, quoted
from engine.checkpoint.published.packing.fp8 import join_fp8
from engine.checkpoint.published.packing.joined import PLAIN
from engine.checkpoint.published.packing.mlx import join_mlx
from engine.checkpoint.published.packing.schemes import MLXScheme, Scheme
from engine.checkpoint.published.shards import Shard
from engine.checkpoint.source import TensorFacts
from engine.errors import UnsupportedFormat


@dataclass(frozen=True, slots=True)
class TensorTable:
    """What the files hold.

    Attributes:
        listed: by name, in file order.
        parts: scales and minima by their own names, which ``listed`` does not have.
    """

    listed: Mapping[str, TensorFacts]
    parts: Mapping[str, TensorFacts]


def tensor_table(shards: Sequence[Shard], scheme: Scheme) -> TensorTable:
    """Join what belongs together and give every tensor its format.

    Raises:
        UnsupportedFormat: a tensor is stored in a way that is not decoded.
        CheckpointUnreadable: codes and scales do not fit together.
    """
    labels = tuple(file_label(shard.path) for shard in shards)
    stored = {facts.name: facts for facts in _stored(shards)}
    if isinstance(scheme, MLXScheme):
        joined = join_mlx(stored, scheme, labels)
    else:
        joined = join_fp8(stored, scheme, labels)
    listed = {
        name: joined.whole.get(name) or _plain(facts, labels[facts.file])
        for name, facts in stored.items()
        if name not in joined.left_out
    }
    parts = (part for facts in joined.whole.values() for part in (facts.scales, facts.minima))
    return TensorTable(listed, {part.name: part for part in parts if part is not None})


def _stored(shards: Sequence[Shard]) -> Iterator[TensorFacts]:
    """Every tensor as the headers have it, its format still the header's word."""
    for file, shard in enumerate(shards):
        for entry in shard.header.entries:
            shape = entry.shape or (1,)
            yield TensorFacts(entry.name, shape, entry.dtype, file, entry.offset, entry.size_bytes)


def _plain(facts: TensorFacts, label: str) -> TensorFacts:
    found = PLAIN.get(facts.format)
    if found is None:
        raise UnsupportedFormat(
            f"{label}: tensor {quoted(facts.name)} is stored as {facts.format}, which Hearth "
            f"cannot read by itself; it reads {', '.join(PLAIN)}",
            file=label,
            tensor=facts.name,
            format=facts.format,
        )
    return replace(facts, format=found)
