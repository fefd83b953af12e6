"""Choosing what computes: a GPU where there is one that can run the model, else the processor.

Why a GPU that is there is not used is always said. No torch here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.config import Compute, Device, EngineConfig
from engine.gpu.cards.limits import unsupported_by_gpu, unsupported_card
from engine.memory.gpus import GpuCard
from engine.models.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Choice:
    """What computes.

    Attributes:
        card: None for the processor.
        notes: why not the GPU, where there is one and nobody asked for the processor.
    """

    card: GpuCard | None
    notes: tuple[str, ...] = ()


def choose(config: EngineConfig, cards: Sequence[GpuCard], spec: ModelSpec) -> Choice:
    """The first card, if it can run the model."""
    asked = config.device is Device.CPU or config.compute is Compute.FLOAT32
    if asked or not cards:
        return Choice(None)
    card = cards[0]
    reason = unsupported_card(card.capability) or unsupported_by_gpu(spec)
    return Choice(card) if reason is None else without(card, reason)


def without(card: GpuCard, reason: str) -> Choice:
    """The processor, and why."""
    return Choice(None, (f"The processor computes, not {card.pool.label}: {reason}",))
