"""What is checked of a whole model on the GPU's kernels, interpreted or compiled.

Every check raises AssertionError with a sentence, and returns figures.
"""

from __future__ import annotations

import numpy as np
import torch
import triton

from engine.checkpoint.source import CheckpointSource
from engine.models.spec import ExpertsSpec, ModelSpec
from tests.helpers.gpu_model import GpuSide, chunked
from tests.helpers.lone_model import relative_l2
from tests.helpers.native_model import TorchSide, prompt, steps

GRID = 64
STEP_ROWS = 6
COMPANIES = (1, 2, 4)


def close_to_float32(
    source: CheckpointSource, ids: list[int], device: str, limit: float
) -> dict[str, float]:
    """Prompt rows and steps against the float32 reference: relative L2 of the logits.

    Of a mixture each row counts by itself, and the one in the middle: where two experts are all but
    equal a row takes the other one, and is far from the reference with all rows after it.
    """
    exact = TorchSide(source, len(ids) + STEP_ROWS)
    with GpuSide(source, exact.rows, device=device) as gpu, exact.lane() as a, gpu.lane() as b:
        wanted = prompt(exact, a, ids)
        found = chunked(gpu, b, ids, ends_of(len(ids), gpu.runner.chunk_rows))
        assert bool(found.isfinite().all()), "Logits of the prompt are no numbers."
        measure = median_row if has_mixture(exact.spec) else relative_l2
        of_prompt = measure(found, wanted)
        more = [token + 1 for token in ids[:STEP_ROWS]]
        wanted, found = steps(exact, a, more), steps(gpu, b, more)
        assert bool(found.isfinite().all()), "Logits of steps are no numbers."
        of_steps = measure(found, wanted)
    exact.close()
    figures = {"prompt": of_prompt, "steps": of_steps}
    assert max(figures.values()) <= limit, f"The logits differ by {figures}."
    return figures


def has_mixture(spec: ModelSpec) -> bool:
    """Whether a layer chooses among experts."""
    bodies = [branch.body for layer in spec.layers for branch in layer.branches]
    return any(isinstance(body, ExpertsSpec) for body in bodies)


def median_row(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The relative L2 of the row in the middle."""
    apart = (found - wanted).double().norm(dim=-1) / wanted.double().norm(dim=-1)
    return float(apart.median())


def same_in_any_cut(source: CheckpointSource, ids: list[int], device: str) -> None:
    """A prompt's rows, its pages and its state have the same bits however it is cut."""
    rows = len(ids) + 1
    cuts = [ends_of(len(ids), 4 * GRID), ends_of(len(ids), GRID), [GRID, len(ids)]]
    found = []
    for ends in cuts:
        with GpuSide(source, rows, device=device) as gpu, gpu.lane() as lane:
            logits = chunked(gpu, lane, ids, ends)
            found.append((logits, *contents(gpu, lane.recurrent_slot)))
    for ends, other in zip(cuts[1:], found[1:], strict=True):
        for name, one, two in zip(("logits", "pages", "states"), found[0], other, strict=True):
            assert same_bits(one, two), f"Cut at {ends} the {name} are others than at {cuts[0]}."
    control = [*ids[:-1], ids[-1] + 1]
    with GpuSide(source, rows, device=device) as gpu, gpu.lane() as lane:
        assert not same_bits(chunked(gpu, lane, control, cuts[0]), found[0][0])


def same_in_company(source: CheckpointSource, ids: list[int], device: str) -> None:
    """A stream's steps have the same bits alone and beside others."""
    half = len(ids) // 2
    prompts = [ids[:half], ids[half:], ids[3:half], ids[half + 1 :]]
    found: dict[int, torch.Tensor] = {}
    for count in COMPANIES:
        with GpuSide(source, len(ids) + STEP_ROWS, device=device, streams=4, lanes=4) as gpu:
            lanes = [gpu.lane() for _ in range(count)]
            for lane, part in zip(lanes, prompts, strict=False):
                chunked(gpu, lane, part, ends_of(len(part), 4 * GRID))
            rows = []
            for token in ids[:STEP_ROWS]:
                for lane in lanes:
                    lane.extend(1)
                at = [lane.length - 1 for lane in lanes]
                rows.append(gpu.runner.step(lanes, [token] * count, at)[0].clone())
            found[count] = torch.stack(rows)
            for lane in lanes:
                lane.close()
    for count in COMPANIES[1:]:
        assert same_bits(found[1], found[count]), f"A stream of {count} differs from one alone."


def nothing_new_after_ready(source: CheckpointSource, ids: list[int], device: str) -> None:
    """Chunks of many lengths and steps of many rows load no kernel and allocate nothing."""
    loaded: list[str] = []

    def note(*arguments: object) -> None:
        loaded.append(str(arguments[:2]))

    rows = len(ids) + STEP_ROWS
    with GpuSide(source, rows, device=device, streams=4, lanes=4) as gpu:
        triton.knobs.runtime.kernel_load_start_hook.add(note)
        try:
            before = allocations(device)
            for count in (1, 2, 15, 16, 31, 63, 64, 100, 127, 192, len(ids)):
                with gpu.lane() as lane:
                    lane.extend(count)
                    gpu.runner.prompt_chunk(lane, ids[:count], 0)
                    lane.extend(1)
                    gpu.runner.step([lane], [7], [count])
            assert not loaded, f"Loaded after ready: {loaded}"
            after = allocations(device)
            assert after == before, f"{after - before} allocations after ready."
        finally:
            triton.knobs.runtime.kernel_load_start_hook.remove(note)


def allocations(device: str) -> int:
    """Pieces of memory that torch's allocator took from the driver so far."""
    if device == "cpu":
        return 0
    return int(torch.cuda.memory_stats()["segment.all.allocated"])


def contents(gpu: GpuSide, slot: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """What was written: page 0 of every group, and the lane's recurrent state."""
    pages = [tensor[:, 0].reshape(-1).view(torch.uint8).cpu() for tensor in gpu.kv.tensors]
    state = torch.empty(0)
    if gpu.recurrent is not None and slot is not None:
        parts = (gpu.recurrent.states[slot], gpu.recurrent.tails[slot])
        state = torch.cat([part.reshape(-1).cpu() for part in parts])
    return torch.cat(pages) if pages else torch.empty(0), state


def ends_of(rows: int, chunk: int) -> list[int]:
    """Where chunks of so many rows end."""
    return [*range(chunk, rows, chunk), rows]


def same_bits(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether two tensors hold the same bytes."""
    flat = [part.contiguous().cpu().view(-1).view(torch.uint8) for part in (one, two)]
    return bool(torch.equal(*flat))


def candidates_are_of_the_row(source: CheckpointSource, ids: list[int], device: str) -> None:
    """What a recorded step finds for a draw is what the whole row has there."""
    with GpuSide(source, len(ids) + STEP_ROWS, device=device) as gpu, gpu.lane() as lane:
        chunked(gpu, lane, ids, ends_of(len(ids), gpu.runner.chunk_rows))
        for token in ids[:STEP_ROWS]:
            lane.extend(1)
            rows = gpu.runner.step_rows([lane], [token], [lane.length - 1])
            found, whole = rows.candidates(0), rows.whole(0)
            assert found is not None, "There are more candidates than room."
            same = np.array_equal(found.ids, np.flatnonzero(whole >= found.bound))
            same &= np.array_equal(found.values, whole[found.ids])
            assert same, "Candidates are not those of the row."
