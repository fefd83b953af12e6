"""What checkpoint files are, for lists of models: no weights, no torch."""

from __future__ import annotations

from pathlib import Path

from engine.checkpoint.facts import checkpoint_facts
from engine.models import FAMILIES
from engine.protocol import CheckpointFacts


def inspect_checkpoint(path: str) -> CheckpointFacts:
    """Facts of one file or folder; what cannot be used has its sentence in ``problem``."""
    found = checkpoint_facts(Path(path))
    problem = found.error
    if problem is None and found.architecture not in FAMILIES:
        problem = (
            f"{found.name} is a model of the family {found.architecture!r}; "
            f"this version runs {', '.join(sorted(FAMILIES))}."
        )
    return CheckpointFacts(
        path=path,
        name=found.name,
        architecture=found.architecture or "",
        format=found.quantization or "",
        file_bytes=found.size_bytes,
        context_tokens=max(0, found.context_tokens or 0),
        vocabulary=found.vocabulary,
        has_template=found.has_template,
        problem=problem,
    )
