"""What checkpoint files are, for lists of models: no weights, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.checkpoint.facts import CheckpointFactsRecord, facts_of, facts_of_damaged
from engine.checkpoint.gguf.checkpoint import map_part
from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import CheckpointSource, Dialect
from engine.errors import CheckpointError
from engine.loading.reads import step_reads
from engine.models import model_spec
from engine.models.spec import ModelSpec, PageGroupSpec
from engine.models.tensors import PICTURE_PARTS
from engine.protocol import CheckpointFacts

KV_ELEMENT_BYTES: Final = 2
PICTURE_FILES: Final = "*mmproj*.gguf"
PICTURE_ARCHITECTURE: Final = "clip"


@dataclass(frozen=True, slots=True)
class ModelCosts:
    """What running a model takes; the fields are those of ``CheckpointFacts``."""

    step_bytes: int
    kv_token_bytes: int
    sliding_token_bytes: int
    sliding_bytes: int
    recurrent_bytes: int


def inspect_checkpoint(path: str) -> CheckpointFacts:
    """Facts of one file or folder; what cannot be used has its sentence in ``problem``."""
    place = Path(path)
    try:
        with open_checkpoint(place) as source:
            found = facts_of(place, source)
            try:
                return _of_model(path, found, source, model_spec(source))
            except CheckpointError as error:
                return _of_record(path, found, error.sentence)
    except CheckpointError as error:
        return _of_record(path, facts_of_damaged(place, error.sentence), error.sentence)


def model_costs(spec: ModelSpec, source: CheckpointSource) -> ModelCosts:
    """What running a model takes, whatever the machine."""
    full = [group for group in spec.groups if group.window is None]
    sliding = [(group, group.window) for group in spec.groups if group.window is not None]
    return ModelCosts(
        step_bytes=step_reads(spec, source.tensors).stored_bytes(source.tensors),
        kv_token_bytes=sum(map(_row_bytes, full)),
        sliding_token_bytes=sum(_row_bytes(group) for group, _ in sliding),
        sliding_bytes=sum(_row_bytes(group) * window for group, window in sliding),
        recurrent_bytes=0 if spec.recurrent is None else spec.recurrent.stream_bytes,
    )


def _of_model(
    path: str, found: CheckpointFactsRecord, source: CheckpointSource, spec: ModelSpec
) -> CheckpointFacts:
    costs = model_costs(spec, source)
    return CheckpointFacts(
        path=path,
        name=found.name,
        architecture=found.architecture or "",
        family=spec.family,
        format=found.quantization or "",
        format_bytes=dict(found.format_bytes),
        file_bytes=found.size_bytes,
        parameters=found.parameter_count,
        context_tokens=spec.context_tokens,
        vocabulary=found.vocabulary or spec.vocabulary,
        has_template=found.has_template,
        has_vision=has_vision(source, spec.hidden),
        step_bytes=costs.step_bytes,
        kv_token_bytes=costs.kv_token_bytes,
        sliding_token_bytes=costs.sliding_token_bytes,
        sliding_bytes=costs.sliding_bytes,
        recurrent_bytes=costs.recurrent_bytes,
    )


def _of_record(path: str, found: CheckpointFactsRecord, problem: str) -> CheckpointFacts:
    return CheckpointFacts(
        path=path,
        name=found.name,
        architecture=found.architecture or "",
        format=found.quantization or "",
        format_bytes=dict(found.format_bytes),
        file_bytes=found.size_bytes,
        parameters=found.parameter_count,
        context_tokens=max(0, found.context_tokens or 0),
        vocabulary=found.vocabulary,
        has_template=found.has_template,
        problem=problem,
    )


def has_vision(source: CheckpointSource, hidden: int) -> bool:
    """Whether the files, or for GGUF one beside them, hold what reads pictures for this model."""
    if any(name.removeprefix("model.").startswith(PICTURE_PARTS) for name in source.tensors):
        return True
    if source.dialect is not Dialect.GGUF:
        return False
    return any(_fits(file, hidden) for file in source.files[0].parent.glob(PICTURE_FILES))


def _fits(file: Path, hidden: int) -> bool:
    """Whether a file is a picture part whose rows are as wide as the model's."""
    try:
        part = map_part(file)
    except (CheckpointError, OSError):
        return False
    metadata = part.header.metadata
    fits = (
        metadata.get("general.architecture") == PICTURE_ARCHITECTURE
        and metadata.get("clip.has_vision_encoder") is True
        and metadata.get("clip.vision.projection_dim", hidden) == hidden
    )
    part.close()
    return fits


def _row_bytes(group: PageGroupSpec) -> int:
    """K and V of one token in all layers of a group."""
    return group.layer_count * 2 * group.kv_head_count * group.head_dim * KV_ELEMENT_BYTES
