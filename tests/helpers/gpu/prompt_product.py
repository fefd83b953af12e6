"""One case of a prompt's product, checked on any device."""

from __future__ import annotations

from dataclasses import replace

import torch

from kernels.prompt_product.cases import TOLERANCES, PromptProductCase, PromptProductInputs, build
from kernels.prompt_product.launch import AMPERE, HOPPER, INTERPRETED, SMALL, Tile, prompt_product
from kernels.prompt_product.reference import product
from tests.helpers.gpu.codes import poisoned

FEW = (1, 17, 64, 300)
SHARED_OF_HOPPER = 200 * 1024


def written(
    case: PromptProductCase, inputs: PromptProductInputs, first: int, rows: int, tile: Tile | None
) -> torch.Tensor:
    """The product of some rows; raises AssertionError where it writes past them."""
    width = case.outputs + case.gap
    dtype = torch.float32 if case.wide else torch.bfloat16
    whole = poisoned(rows + 1, width, device=inputs.x.device, dtype=dtype)
    out = whole[:rows, : case.outputs]
    if case.add:
        out.copy_(inputs.before[first : first + rows])
    x = inputs.x[first : first + rows]
    prompt_product(x, inputs.weight, out, bias=inputs.bias, add=case.add, tile=tile)
    assert bool(whole[rows].isnan().all()), f"{case}: written past the last row."
    assert bool(whole[:, case.outputs :].isnan().all()), f"{case}: written past the last column."
    return out


def tiles(inputs: PromptProductInputs) -> tuple[Tile, ...]:
    """Every configuration that the device can run with these inputs."""
    if not inputs.x.is_cuda:
        return (
            INTERPRETED,
            Tile(16, 64, 32, 4, 1, 1.0),
            Tile(32, 16, 32, 4, 1, 1.0, described=True),
        )
    if inputs.dtype is torch.float32:
        return (SMALL, Tile(64, 32, 32, 4, 2, 1.0))
    facts = torch.cuda.get_device_properties(inputs.x.device)
    limit = facts.shared_memory_per_block_optin  # type: ignore[attr-defined]
    pointers = tuple(replace(tile, described=False) for tile in HOPPER)
    return (*HOPPER, *pointers, *AMPERE) if limit >= SHARED_OF_HOPPER else AMPERE


def check(case: PromptProductCase, device: torch.device | str) -> dict[str, float]:
    """Errors of one case; raises AssertionError where a promise is broken."""
    where = torch.device(device)
    inputs = build(case, where, torch.Generator(device=where).manual_seed(1))
    found = written(case, inputs, 0, case.rows, None)
    wanted = product(inputs.x, inputs.weight, inputs.bias)
    if case.add:
        wanted += inputs.before.double()
    norm = wanted.norm(dim=1).clamp(min=1e-30)
    error = float(((found.double() - wanted).norm(dim=1) / norm).max())
    limit = TOLERANCES[inputs.dtype, found.dtype]
    assert error <= limit, f"{case}: off by {error:.2e}, not {limit:.0e}."
    if where.type == "cuda":
        same_bits(case, inputs, found)
    return {"error": error}


def same_bits(case: PromptProductCase, inputs: PromptProductInputs, found: torch.Tensor) -> None:
    """Few rows against many, and every configuration against the chosen one."""
    for rows in FEW:
        if rows < case.rows:
            for first in (0, case.rows - rows):
                part = written(case, inputs, first, rows, None)
                wanted = found[first : first + rows]
                assert torch.equal(part, wanted), f"{case}: {rows} rows from {first} on differ."
    for tile in tiles(inputs):
        other = written(case, inputs, 0, case.rows, tile)
        assert torch.equal(other, found), f"{case}: other bits with {tile}."
