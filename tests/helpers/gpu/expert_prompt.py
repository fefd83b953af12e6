"""One case of experts' products of prompt rows, checked on any device."""

from __future__ import annotations

import torch

from kernels.expert_prompt.cases import TOLERANCE, ExpertPromptCase, ExpertPromptInputs, build
from kernels.expert_prompt.launch import AMPERE, HOPPER, expert_prompt
from kernels.expert_prompt.reference import products
from kernels.prompt_product.launch import INTERPRETED, Tile, prompt_product
from tests.helpers.gpu.codes import poisoned

SHARED_OF_HOPPER = 200 * 1024
ALONE = 3


def written(
    case: ExpertPromptCase, inputs: ExpertPromptInputs, tile: Tile | None = None
) -> torch.Tensor:
    """All pairs' products; raises AssertionError where something else is written."""
    pairs, width = len(inputs.order), case.outputs + case.gap
    device = inputs.x.device
    whole = poisoned(pairs + 1, width, device=device, dtype=torch.bfloat16)
    expert_prompt(
        inputs.x, inputs.weight, inputs.order, inputs.starts, whole[:pairs, : case.outputs],
        rows_per_pair=case.active if case.shared else 1, tile=tile,
    )  # fmt: skip
    assert bool(whole[pairs].isnan().all()), f"{case}: written past the last pair."
    assert bool(whole[:, case.outputs :].isnan().all()), f"{case}: written past the last column."
    return whole[:pairs, : case.outputs]


def tiles(inputs: ExpertPromptInputs) -> tuple[Tile, ...]:
    """Every configuration that the device can run."""
    if not inputs.x.is_cuda:
        return (INTERPRETED, Tile(16, 64, 32, 4, 1, 1.0))
    facts = torch.cuda.get_device_properties(inputs.x.device)
    limit = facts.shared_memory_per_block_optin  # type: ignore[attr-defined]
    return (*HOPPER, *AMPERE) if limit >= SHARED_OF_HOPPER else AMPERE


def check(case: ExpertPromptCase, device: torch.device | str) -> dict[str, float]:
    """Errors of one case; raises AssertionError where a promise is broken."""
    where = torch.device(device)
    inputs = build(case, where, torch.Generator(device=where).manual_seed(1))
    found = written(case, inputs)
    per_row = case.active if case.shared else 1
    wanted = products(inputs.x, inputs.weight, inputs.experts, per_row)
    norm = wanted.norm(dim=1).clamp(min=1e-30)
    error = float(((found.double() - wanted).norm(dim=1) / norm).max())
    assert error <= TOLERANCE, f"{case}: off by {error:.2e}, not {TOLERANCE:.0e}."
    if where.type == "cuda":
        same_bits(case, inputs, found, per_row)
    return {"error": error}


def same_bits(
    case: ExpertPromptCase, inputs: ExpertPromptInputs, found: torch.Tensor, per_row: int
) -> None:
    """Every configuration, and pairs alone with their expert, against all at once."""
    for tile in tiles(inputs):
        assert torch.equal(written(case, inputs, tile), found), f"{case}: other bits with {tile}."
    for pair in range(0, len(found), max(1, len(found) // ALONE)):
        row = inputs.x[pair // per_row : pair // per_row + 1]
        alone = poisoned(1, case.outputs, device=found.device, dtype=torch.bfloat16)
        prompt_product(row, inputs.weight[int(inputs.experts[pair])], alone)
        assert torch.equal(alone[0], found[pair]), f"{case}: pair {pair} alone is another."
