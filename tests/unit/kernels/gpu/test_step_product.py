"""Products of generated rows: against float64, each row's bits its own, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernels.checks import KernelShapeError
from kernels.packed.weight import PackedWeight
from kernels.step_product.cases import CASES, TOLERANCE, StepProductCase, build, random_weight
from kernels.step_product.configuration import Configuration
from kernels.step_product.launch import (
    Product,
    step_experts,
    step_product,
    step_products,
)
from tests.helpers.gpu.step_product import (
    FEW_PROGRAMS,
    check,
    distance,
    expected,
    launched,
    same_bits,
)

CPU = torch.device("cpu")
CASE = StepProductCase("one", "q4_k", 2, 4, 256)


@pytest.mark.parametrize("case", [c for c in CASES if c.interpreted], ids=lambda c: c.name)
def test_products_are_the_reference_and_a_row_is_its_own(case: StepProductCase) -> None:
    assert check(case, CPU)["relative_l2"] <= TOLERANCE


@pytest.mark.parametrize("plane", ["low", "scales", "supers", "minima", "super_minima"])
def test_every_plane_counts(plane: str) -> None:
    inputs = build(CASE, CPU, torch.Generator().manual_seed(5))
    before = launched(CASE, inputs)
    assert isinstance(inputs.weight, PackedWeight)
    # The first 32 activations are zeros.
    entries = getattr(inputs.weight, plane)
    entries[2, entries.shape[1] // 2] += 1
    after = launched(CASE, inputs)
    assert not same_bits(before[:, 2], after[:, 2])
    assert same_bits(before[:, [0, 1, 3]], after[:, [0, 1, 3]])


@pytest.mark.parametrize("part", ["high", "low", "scales", "sums"])
def test_every_part_of_a_row_counts_for_that_row_alone(part: str) -> None:
    inputs = build(CASE, CPU, torch.Generator().manual_seed(5))
    before = launched(CASE, inputs)
    entries = getattr(inputs.x, part)
    entries[1, entries.shape[1] // 2] += 1
    after = launched(CASE, inputs)
    assert not same_bits(before[1], after[1])
    assert same_bits(before[0], after[0])


def test_the_high_plane_alone_is_not_the_product() -> None:
    inputs = build(CASE, CPU, torch.Generator().manual_seed(5))
    out = torch.empty_like(inputs.before)
    step_product(inputs.x, inputs.weight, out, cut=FEW_PROGRAMS, planes=1)
    error = distance(out, expected(CASE, inputs))
    assert 100 * TOLERANCE < error < 0.05


@pytest.mark.parametrize("packing", ["q4_k", "q6_k", "q2_k", "q5_0", "iq4_nl", "mlx8_128_f32"])
def test_products_on_tensor_cores_are_the_reference(packing: str) -> None:
    case = StepProductCase("tensor cores", packing, 1, 18, 256)
    inputs = build(case, CPU, torch.Generator().manual_seed(5))
    out = torch.full_like(inputs.before, torch.nan)
    step_product(inputs.x, inputs.weight, out, cut=Configuration(1, 1, matrix=True))
    assert distance(out, expected(case, inputs)) <= TOLERANCE


@pytest.mark.parametrize("warps", [2, 4])
def test_products_on_tensor_cores_add_what_warps_along_k_have(warps: int) -> None:
    case = StepProductCase("tensor cores", "q8_0", 2, 9, 1280, bias=True, add=True)
    inputs = build(case, CPU, torch.Generator().manual_seed(5))
    out = inputs.before.clone()
    cut = Configuration(1, warps, matrix=True)
    step_product(inputs.x, inputs.weight, out, bias=inputs.bias, add=True, cut=cut)
    assert distance(out, expected(case, inputs)) <= TOLERANCE


def test_experts_are_the_products_with_their_rows_of_the_stack() -> None:
    case = StepProductCase("stack", "q5_k", 2, 4, 256, chosen=2, experts=3)
    inputs = build(case, CPU, torch.Generator().manual_seed(5))
    assert inputs.chosen is not None
    inputs.chosen.copy_(torch.tensor([[2, 0], [1, 1]], dtype=torch.int32))
    found = launched(case, inputs)
    whole = torch.empty(2, 12)
    step_product(inputs.x, inputs.weight, whole, cut=FEW_PROGRAMS)
    picked = whole.view(2, 3, 4)
    assert distance(found[0], picked[0, [2, 0]].double()) <= TOLERANCE
    assert distance(found[1], picked[1, [1, 1]].double()) <= TOLERANCE


def test_products_of_one_launch_are_those_of_launches_of_their_own() -> None:
    x = build(CASE, CPU, torch.Generator().manual_seed(5)).x
    generator = torch.Generator().manual_seed(6)
    joint, alone = torch.full((2, 17), torch.nan), torch.full((2, 17), torch.nan)
    products = []
    for packing, first, end in (
        ("q6_k", 0, 5),
        ("q4_k", 5, 12),
        ("q8_0", 12, 14),
        ("bf16", 14, 17),
    ):
        weight = random_weight(packing, end - first, 256, CPU, generator)
        products.append(Product(weight, joint[:, first:end]))
        step_product(x, weight, alone[:, first:end])
    step_products(x, products)
    assert same_bits(joint, alone)
    with pytest.raises(KernelShapeError, match="one row stride"):
        step_products(x, [products[0], Product(products[1].weight, torch.empty(2, 7))])


def test_shapes_that_do_not_fit_are_refused() -> None:
    inputs = build(CASE, CPU, torch.Generator().manual_seed(5))
    out = torch.empty_like(inputs.before)
    for bad in (out[:1], out[:, :3], out.double(), out.T.contiguous().T):
        with pytest.raises(KernelShapeError, match="out is"):
            step_product(inputs.x, inputs.weight, bad)
    with pytest.raises(KernelShapeError, match="bias is"):
        step_product(inputs.x, inputs.weight, out, bias=torch.zeros(3))
    wide = build(replace(CASE, columns=512), CPU, torch.Generator().manual_seed(5))
    with pytest.raises(KernelShapeError, match="against columns 512"):
        step_product(inputs.x, wide.weight, out)
    with pytest.raises(KernelShapeError, match="int32"):
        step_experts(
            inputs.x, inputs.weight, torch.zeros(2, 1, dtype=torch.int64), torch.empty(2, 1, 4)
        )
