"""How long one call takes on the card, without what the host needs to start it."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch

WARM_UPS = 3
RUNS = 7
GRAPH_MS = 3.0
RUN_MS = 6.0
MOST_CALLS = 128


def timed(call: Callable[[], object]) -> dict[str, Any]:
    """Median, lowest and highest microseconds of one call, from a CUDA graph of several.

    A call that no graph can hold is timed as it is started, and the figures say so.
    """
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    one_ms = _milliseconds(call, 2) / 2
    count = max(1, min(MOST_CALLS, int(GRAPH_MS / max(one_ms, 1e-3))))
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                call()
    except RuntimeError:
        torch.cuda.synchronize()
        return _figures([_milliseconds(call, count) / count for _ in range(RUNS)], "no graph")
    graph.replay()
    replay_ms = _milliseconds(graph.replay, 1)
    replays = max(1, int(RUN_MS / max(replay_ms, 1e-3)))
    found = [_milliseconds(graph.replay, replays) / replays / count for _ in range(RUNS)]
    return _figures(found, f"graph of {count}")


def _milliseconds(call: Callable[[], object], times: int) -> float:
    begins, ends = (
        torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        for _ in range(2)
    )
    torch.cuda.synchronize()
    begins.record()
    for _ in range(times):
        call()
    ends.record()
    ends.synchronize()
    return float(begins.elapsed_time(ends))


def _figures(found_ms: list[float], how: str) -> dict[str, Any]:
    return {
        "median_us": 1e3 * statistics.median(found_ms),
        "lowest_us": 1e3 * min(found_ms),
        "highest_us": 1e3 * max(found_ms),
        "how": how,
    }
