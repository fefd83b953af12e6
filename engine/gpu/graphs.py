"""Recorded steps: one CUDA graph for each number of rows, from one pool of memory.

Owns the graphs and their pool. A graph replays the launches of a step into the same scratch; what
differs is read on the device. Used from the engine thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from engine.owner import Owner

Compute = Callable[[int], torch.Tensor]
"""Launches a step of so many rows: [rows, vocabulary], in scratch."""


class StepGraphs(Owner):
    """Steps of fixed numbers of rows, recorded once; on a processor they are launched each time."""

    def __init__(self, compute: Compute, device: torch.device) -> None:
        self._compute = compute
        self._device = device
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._outputs: dict[int, torch.Tensor] = {}

    def record(self, buckets: Sequence[int], progress: Callable[[int, int], None]) -> None:
        """Run and record each number of rows, the largest first; nothing compiles afterwards."""
        ordered = sorted(buckets, reverse=True)
        for done, rows in enumerate(ordered):
            progress(done, len(ordered))
            self._outputs[rows] = self._compute(rows)
            if self._device.type != "cuda":
                continue
            torch.cuda.synchronize(self._device)
            graph = torch.cuda.CUDAGraph()
            pool = next(iter(self._graphs.values())).pool() if self._graphs else None
            with torch.cuda.graph(graph, pool=pool):
                self._outputs[rows] = self._compute(rows)
            self._graphs[rows] = graph
        progress(len(ordered), len(ordered))

    def step(self, rows: int) -> torch.Tensor:
        """Compute a step of a recorded number of rows: [rows, vocabulary], in scratch."""
        graph = self._graphs.get(rows)
        if graph is None:
            return self._compute(rows)
        graph.replay()
        return self._outputs[rows]

    def close(self) -> None:
        """Free the graphs; may be repeated."""
        self._graphs.clear()
        self._outputs.clear()
