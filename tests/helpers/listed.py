"""Facts of a checkpoint as a list of models reads them."""

from __future__ import annotations

from pathlib import Path

from engine.checkpoint.facts import CheckpointFactsRecord, facts_of, facts_of_damaged
from engine.checkpoint.open import open_checkpoint
from engine.errors import CheckpointError


def checkpoint_facts(path: Path) -> CheckpointFactsRecord:
    """Read what a list shows; ``path`` is a file, any part of a split one, or its folder."""
    try:
        with open_checkpoint(path) as source:
            return facts_of(path, source)
    except CheckpointError as error:
        return facts_of_damaged(path, error.sentence)
