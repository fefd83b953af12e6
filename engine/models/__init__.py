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
        "gemma3_text": "engine.models.families.gemma3",
        "gemma4": "engine.models.families.gemma4",
        "gemma4_text": "engine.models.families.gemma4",
        "gemma4_unified": "engine.models.families.gemma4",
        "gemma4_unified_text": "engine.models.families.gemma4",
        "llama": "engine.models.families.llama",
        "qwen3": "engine.models.families.qwen3",
        "qwen35": "engine.models.families.qwen3_5",
        "qwen35moe": "engine.models.families.qwen3_5_moe",
        "qwen3_5": "engine.models.families.qwen3_5",
        "qwen3_5_moe": "engine.models.families.qwen3_5_moe",
        "qwen3_5_moe_text": "engine.models.families.qwen3_5_moe",
        "qwen3_5_text": "engine.models.families.qwen3_5",
        "qwen3_moe": "engine.models.families.qwen3_moe",
        "qwen3_next": "engine.models.families.qwen3_next",
        "qwen3moe": "engine.models.families.qwen3_moe",
        "qwen3next": "engine.models.families.qwen3_next",
        "smollm3": "engine.models.families.llama",
    }
)

UNSUPPORTED: Mapping[str, str] = MappingProxyType(
    {
        name: "Qwen3.8-Flash-Next, whose hyper-connections, sparse attention and n-gram tables"
        for name in ("qwen4_exp", "qwen4_exp_text", "qwen4exp")
    }
)
"""Families that people have and that do not run: what they are, and what of them is missing."""


def model_spec(source: CheckpointSource) -> ModelSpec:
    """Turn an open checkpoint into the facts that the executors read.

    Raises:
        UnsupportedFamily: the architecture, or a variant of it, is not one that runs.
        CheckpointUnreadable: a key or tensor the family needs is missing or misshapen.
    """
    module = FAMILIES.get(source.architecture)
    if module is None:
        raise _unsupported(source)
    spec: ModelSpec = importlib.import_module(module).model_spec(source)
    return spec


def supported_families() -> list[str]:
    """The families that run, by the names of the modules that read them."""
    return sorted({module.rpartition(".")[2] for module in FAMILIES.values()})


def _unsupported(source: CheckpointSource) -> UnsupportedFamily:
    name, known = source.architecture, UNSUPPORTED.get(source.architecture)
    file = source.files[0].name
    return UnsupportedFamily(
        f"{file} holds a model of the family {name!r}"
        + ("" if known is None else f" ({known} do not run here yet)")
        + f"; supported: {', '.join(supported_families())}.",
        architecture=name,
    )
