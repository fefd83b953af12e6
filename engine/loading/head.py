"""Whether a model's head is the embedding once more, found out when the model is loaded.

Some makers publish the head of a tied model beside the embedding. Numbers tell a copy from a head
that was trained on its own; the copy then takes no memory. Reads both tensors of the open file.
"""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoint.source import CheckpointSource
from engine.models.layers import OWN_HEAD_NOTE
from engine.models.spec import ModelSpec


def without_copy(spec: ModelSpec, source: CheckpointSource) -> ModelSpec:
    """The spec with the embedding as its head, where the config ties them and the bytes agree."""
    if OWN_HEAD_NOTE not in spec.notes or not _alike(source, spec.head, spec.embedding):
        return spec
    notes = tuple(note for note in spec.notes if note != OWN_HEAD_NOTE)
    return replace(spec, head=spec.embedding, notes=notes)


def _alike(source: CheckpointSource, one: str, other: str) -> bool:
    """Whether two tensors are stored in one way and byte for byte the same."""
    first, second = source.tensors[one], source.tensors[other]
    if (first.format, first.shape, first.block) != (second.format, second.shape, second.block):
        return False
    parts = zip((first.scales, first.minima), (second.scales, second.minima), strict=True)
    names = [(one, other)]
    for left, right in parts:
        if (left is None) != (right is None):
            return False
        if left is not None and right is not None:
            names.append((left.name, right.name))
    return all(source.tensor_bytes(a) == source.tensor_bytes(b) for a, b in names)
