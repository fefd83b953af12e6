"""Building a ``GpuRunner``: weights into their arena, scratch, recorded steps.

Everything is reserved in the ledger before it is allocated; what was made is unmade in reverse.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import torch

from engine.cache.pages import pages_for
from engine.gpu.arena.weights import GpuWeights
from engine.gpu.layers import model_weights
from engine.gpu.runner import GpuParts, GpuRunner
from engine.gpu.sizes import chunk_sizes, step_sizes, unpacked_elements
from engine.gpu.step import Places
from engine.gpu.workspace import Workspace
from engine.runner import RunnerParts

WORKSPACE: Final = "workspace"

_LOG = logging.getLogger(__name__)


def build_gpu_runner(
    parts: RunnerParts, device: torch.device, pool: str, chunk_rows: int
) -> GpuRunner:
    """Load the weights and record the steps; ``parts.resources`` owns all of it afterwards.

    Args:
        pool: the ledger's name of the device's memory.
        chunk_rows: the most rows of one prompt chunk.

    Raises:
        MemoryRefused: weights or scratch do not fit.
    """
    spec, stack = parts.spec, parts.resources
    weights = stack.enter_context(GpuWeights(parts.source, spec, device, parts.ledger, pool))
    weights.load(parts.progress)
    model = model_weights(spec, weights, device)
    step = _workspace(parts, step_sizes(spec, parts.streams), device, pool)
    elements = unpacked_elements(spec, parts.source.tensors)
    chunk = _workspace(parts, chunk_sizes(spec, chunk_rows, elements), device, pool)
    pages = tuple(pages_for(parts.context_tokens) for _ in spec.groups)
    places = Places(parts.kv, parts.recurrent)
    runner = stack.enter_context(
        GpuRunner(GpuParts(model, places, step, chunk, pages, chunk_rows, parts.streams, device))
    )
    runner.record(parts.progress)
    _LOG.info("GPU runner built device=%s chunk_rows=%d", device, chunk_rows)
    return runner


def _workspace(
    parts: RunnerParts, sizes: Mapping[str, int], device: torch.device, pool: str
) -> Workspace:
    """Scratch, reserved before it is made."""
    lease = parts.resources.enter_context(
        parts.ledger.reserve(WORKSPACE, {pool: sum(sizes.values())})
    )
    made = parts.resources.enter_context(Workspace(sizes, device))
    lease.commit()
    return made
