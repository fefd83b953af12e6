"""What running a published model takes follows from its metadata alone, at the true geometry.

``tests/helpers/catalogue.py`` has the models and the figures that are expected of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import pytest

from engine.cache.formats import KvFormat
from engine.forward.products import linears
from engine.loading.footprint import footprint
from engine.loading.gpu_footprint import gpu_footprint
from engine.loading.inspection import ModelCosts, model_costs
from engine.loading.reads import decoded_elements, mixtures, model_elements, step_reads
from engine.memory.placement import Geometry, Machine, Plan, Room, Wish, plan_placement
from engine.native import StoredWeights, native_sizes
from kernels.cpu.library import Library, Pool
from tests.helpers.catalogue import CATALOGUE, GIB, KIB, MIB, sourced


def costs(name: str) -> ModelCosts:
    return model_costs(*sourced(name))


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_model_of_the_catalogue_has_its_figures(name: str) -> None:
    """At 2 bytes an element a token reads exactly twice what is active."""
    entry, (spec, source) = CATALOGUE[name], sourced(name)
    found = costs(name)
    # Gemma 4 stores one scale a layer, which transformers does not count among the parameters.
    scales = sum(layer.scale is not None for layer in spec.layers)
    assert model_elements(spec, source.tensors) == entry.parameters + scales
    assert step_reads(spec, source.tensors).element_count == entry.active + scales
    assert found.step_bytes == 2 * (entry.active + scales)
    assert found.kv_token_bytes == entry.full_kib * KIB
    assert found.sliding_token_bytes == entry.sliding_kib * KIB
    assert found.sliding_bytes == entry.cap_mib * MIB
    assert found.recurrent_bytes == sum(entry.recurrent) * MIB
    assert entry.active * 34 / 32 / 1e9 == pytest.approx(entry.q8_gb, abs=6e-4)


def test_what_is_decoded_counts_each_tensor_once_and_no_row_that_is_looked_up() -> None:
    """Untied embeddings and per-layer ones stay in the file; all experts are decoded."""
    for name, left in {
        "Qwen3.5-0.8B": 0,
        "Qwen3.8-27B": 248_320 * 5120,
        "Qwen3.5-35B-A3B": 248_320 * 2048,
        "Gemma-4-E2B": 262_144 * 35 * 256,
        "Gemma-4-31B": 0,
    }.items():
        spec, source = sourced(name)
        scales = sum(layer.scale is not None for layer in spec.layers)
        wanted = CATALOGUE[name].parameters + scales - left
        assert decoded_elements(spec, source.tensors) == wanted
        assert footprint(source, spec, wide=True).weight_bytes == 4 * wanted


@dataclass(frozen=True)
class Vector:
    """One test vector of section 3; pages hold whole chunks, so a plan has a little more.

    Attributes:
        full, sliding: bytes by the formula.
        extra_rows: rows of the sliding group beyond the window: a chunk, filled up to whole pages
            wherever the window begins in one.
    """

    name: str
    context: int
    full: float
    sliding: float = 0
    extra_rows: int = 0


VECTORS = (
    Vector("Qwen3.8-27B", 32_768, 2.0 * GIB),
    Vector("Qwen3.5-35B-A3B", 131_072, 2.5 * GIB),
    Vector("Gemma-4-31B", 131_072, 10.0 * GIB, 800 * MIB, 512),
    Vector("Gemma-4-E4B", 131_072, 2.0 * GIB, 20 * MIB, 512),
    Vector("SmolLM2-135M", 8192, 180 * MIB),
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector.name))
def test_the_planner_s_vectors(vector: Vector) -> None:
    """One chat: the formula's bytes for full layers, for sliding ones those of whole pages."""
    spec, source = sourced(vector.name)
    found = costs(vector.name)
    assert found.kv_token_bytes * vector.context == vector.full
    assert found.sliding_bytes == vector.sliding
    geometry = Geometry(spec.groups, vector.context, 256, KvFormat.FP16, spec.recurrent)
    machine = Machine(Room("ram", 1 << 40))
    plan = plan_placement(
        machine, footprint(source, spec, wide=False), geometry, Wish(vector.context, 1)
    )
    assert isinstance(plan, Plan)
    by_owner = {line.owner: line.bytes for line in plan.lines}
    beyond = found.sliding_token_bytes * vector.extra_rows
    assert by_owner["KV pages"] == vector.full + vector.sliding + beyond
    states = sum(CATALOGUE[vector.name].recurrent) * MIB
    assert by_owner.get("recurrent states", 0) == plan.slot_count * states


@pytest.mark.parametrize("name", CATALOGUE)
def test_no_executor_reserves_more_than_is_planned(name: str) -> None:
    """Arena, copies and scratch of the native library for the whole model, from shapes alone."""
    spec, source = sourced(name, "q8_0")
    taken, context = footprint(source, spec, wide=False), 16_384
    with Pool(Library(), 8) as pool:
        weights = StoredWeights(source, Library(), pool)
        multiplied = linears(spec)
        used = weights.arena_bytes(multiplied) + weights.copied_bytes(multiplied)
        planned = taken.workspace(context, 4, 256) + taken.logits(4)
        assert native_sizes(spec, context, 4, pool).total_bytes <= planned
    stored = sum(facts.stored_bytes for facts in source.tensors.values())
    assert used <= taken.weight_bytes <= 1.06 * stored


def test_layers_that_share_k_and_v_own_no_pages() -> None:
    for name, own in {"Gemma-4-E2B": (3, 12), "Gemma-4-E4B": (4, 20)}.items():
        spec, _ = sourced(name)
        assert tuple(group.layer_count for group in spec.groups) == own
        owners = [layer.group for layer in spec.attentions if layer.owns_kv]
        assert [owners.count(group) for group in range(2)] == list(own)
        assert len(spec.attentions) > sum(own)


def test_a_model_in_eight_bits_reads_the_catalogue_s_bytes() -> None:
    for name in ("Qwen3.8-27B", "Gemma-4-E4B", "Qwen3.5-35B-A3B"):
        found = model_costs(*sourced(name, "q8_0"))
        assert found.step_bytes / 1e9 == pytest.approx(CATALOGUE[name].q8_gb, abs=6e-4)


@pytest.mark.parametrize("name", CATALOGUE)
def test_on_a_gpu_weights_are_those_that_take_part_and_divide_into_layers_and_experts(
    name: str,
) -> None:
    """All but per-layer rows, which are looked up, once each; what is aligned adds little."""
    spec, source = sourced(name, "q8_0")
    taken = gpu_footprint(source, spec)
    looked_up = set() if spec.per_layer is None else {spec.per_layer.embedding}
    parts = [each for each in source.tensors.values() if each.name not in looked_up]
    wide = [each for each in parts if len(each.shape) > 1]
    stored = sum(each.stored_bytes for each in wide)
    routers = {body.router.weight for layer in spec.layers for body in mixtures(layer)}
    floats = 4 * sum(prod(source.tensors[each].shape) for each in routers)
    assert stored - floats <= taken.weight_bytes <= 1.01 * stored + floats + (8 << 20)
    assert ("looked up" in taken.weights) is bool(looked_up)
    streamable = taken.streamable
    assert streamable is not None
    assert len(streamable.layer_bytes) == len(spec.layers)
    rest = taken.weight_bytes - sum(streamable.layer_bytes) - streamable.experts_bytes
    ends = sum(source.tensors[each].stored_bytes for each in {spec.head, spec.embedding})
    assert 0.99 * ends - floats <= rest <= 1.01 * ends + 0.01 * taken.weight_bytes + (8 << 20)
    whole = streamable.expert_bytes * streamable.expert_layers * streamable.expert_count
    assert streamable.experts_bytes <= whole <= 1.001 * streamable.experts_bytes + 1000
    assert (whole > 0) is ("A3B" in name or "A4B" in name)
