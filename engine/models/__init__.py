"""The family table: architecture name to the module that reads it, loaded when asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType

from engine.checkpoint.source import CheckpointSource
from engine.errors import UnsupportedFamily
from engine.models.spec import ModelSpec

FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "gemma3": "engine.models.families.gemma3",
        "llama": "engine.models.families.llama",
    }
)


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Turn an open checkpoint into the facts that the executors read.

    Raises:
        UnsupportedFamily: the architecture, or a variant of it, is not one that runs.
        CheckpointUnreadable: a key or tensor the family needs is missing or misshapen.
    """
    module = FAMILIES.get(source.architecture)
    if module is None:
        raise UnsupportedFamily(
            f"{source.files[0].name} holds a model of the family {source.architecture!r}; "
            f"supported: {', '.join(sorted(FAMILIES))}.",
            architecture=source.architecture,
        )
    spec: ModelSpec = importlib.import_module(module).model_spec(source)
    return spec
