"""Parts of a spec one by one: which experts, whose rows, what is decoded and what is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from engine.forward import DequantizedProducts, TorchRunner, Weights
from engine.forward.layers.feed_forward import FeedForwards
from engine.forward.layers.norms import Norms
from engine.forward.products import linears
from engine.models.spec import (
    Activation,
    AttentionSpec,
    Branch,
    ExpertsSpec,
    FeedForwardSpec,
    LayerSpec,
    Linear,
    ModelSpec,
    Norm,
)
from tests.helpers.checkpoints.variants import make, random_ids
from tests.helpers.handmade.gemma4 import gemma4_spec
from tests.helpers.handmade.parts import source_of
from tests.helpers.handmade.qwen import qwen_spec
from tests.helpers.lone_model import LoneModel, relative_l2
from tests.helpers.memory_source import MemorySource

IDS = random_ids(300)


class CountedWeights(Weights):
    """Counts what is decoded whole."""

    def __init__(self, source: MemorySource) -> None:
        super().__init__(source)
        self.decoded: list[str] = []

    def whole(self, name: str) -> torch.Tensor:
        self.decoded.append(name)
        return super().whole(name)


class CountedProducts(DequantizedProducts):
    """Remembers which weights were multiplied by how many rows."""

    def __init__(
        self, spec: ModelSpec, weights: Weights, made: Callable[[int], None] | None = None
    ) -> None:
        super().__init__(spec, weights, made)
        self.rows: dict[str, int] = {}

    def multiply(self, x: torch.Tensor, linear: Linear) -> torch.Tensor:
        self.rows[linear.weight] = len(x)
        return super().multiply(x, linear)

    def matrix(self, linear: Linear) -> torch.Tensor:
        return self._transposed[linear].t()


@cache
def reference(name: str) -> PreTrainedModel:
    return make(name)


def test_a_tensor_that_products_share_is_decoded_once_and_viewed() -> None:
    """A stack of experts (one run of rows each), and a head that is the embedding."""
    model = reference("gemma4 experts")
    spec, weights = gemma4_spec(model), CountedWeights(source_of(model))
    products = CountedProducts(spec, weights)
    assert sorted(weights.decoded) == sorted({linear.weight for linear in linears(spec)})
    stack = "model.layers.0.experts.gate_up_proj"
    parts = [products.matrix(linear) for linear in linears(spec) if linear.weight == stack]
    assert len(parts) == 14
    assert len({part.untyped_storage().data_ptr() for part in parts}) == 1
    assert torch.equal(torch.cat(parts).view(7, 76, 90), model.state_dict()[stack])


def test_rows_in_many_runs_are_gathered_once_and_nothing_else_is_kept() -> None:
    """Fused projections: together the parts hold each row once, and the whole is dropped."""
    model = reference("qwen3_next")
    spec = qwen_spec(model)
    products = CountedProducts(spec, Weights(source_of(model)))
    fused = "model.layers.0.linear_attn.in_proj_qkvz.weight"
    parts = [products.matrix(linear) for linear in linears(spec) if linear.weight == fused]
    whole = model.state_dict()[fused]
    assert sum(part.untyped_storage().nbytes() for part in parts) == 4 * whole.numel()
    rows = torch.cat(parts)
    assert torch.equal(rows.sort(0).values, whole.sort(0).values)
    assert torch.equal(rows[:12], whole[:12])
    assert torch.equal(rows[12:24], whole[2 * 12 + 4 * 20 :][:12])


@pytest.mark.parametrize("name", ["gemma4 experts", "qwen3_next"])
def test_the_bytes_that_are_told_while_decoding_are_those_that_are_kept(name: str) -> None:
    model = reference(name)
    spec, told = (gemma4_spec if "gemma" in name else qwen_spec)(model), list[int]()
    products = CountedProducts(spec, Weights(source_of(model)), told.append)
    kept = {}
    for linear in linears(spec):
        storage = products.matrix(linear).untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
    assert sum(told) == sum(kept.values())
    assert len(told) == len({linear.weight for linear in linears(spec)})


@pytest.mark.parametrize("asks", [False, True])
def test_layers_that_leave_nothing_behind_run_for_wanted_rows_alone(asks: bool) -> None:
    """The last four of nine layers read others' keys; the fifth is the last that writes."""
    model = reference("gemma4 per layer")
    source, spec = source_of(model), gemma4_spec(model)
    with LoneModel(source, 300, spec=spec) as lone:
        weights = Weights(source)
        products = CountedProducts(spec, weights)
        runner = TorchRunner(spec, weights, products, lone.kv)
        lone.lane.extend(200)
        runner.prompt_chunk(lone.lane, IDS[:200], 0, wants_logits=asks)
    rows = products.rows
    assert rows["model.layers.3.mlp.down_proj.weight"] == 200
    assert rows["model.layers.4.self_attn.k_proj.weight"] == 200
    for name in ("4.self_attn.q_proj", "4.mlp.down_proj", "5.self_attn.q_proj", "8.mlp.down_proj"):
        assert rows.get(f"model.layers.{name}.weight") == (1 if asks else None)


class Mixture:
    """Experts of width 5 over 6 columns with scales 1, 2, 3..., in torch and by hand."""

    def __init__(self, router: NDArray[np.float64], active: int) -> None:
        count, draw = len(router), np.random.default_rng(4)
        self.arrays = {
            "router": router.astype(np.float32),
            "both": draw.standard_normal((count, 10, 6)).astype(np.float32),
            "down": draw.standard_normal((count, 6, 5)).astype(np.float32),
            "scales": np.arange(1, count + 1, dtype=np.float32),
            "other": np.zeros((3, 6), np.float32),
        }
        experts = tuple(
            FeedForwardSpec(
                5,
                Linear("both", None, ((10 * expert, 5),)),
                Linear("both", None, ((10 * expert + 5, 5),)),
                Linear("down", None, ((6 * expert, 6),)),
                Activation.SILU,
            )
            for expert in range(count)
        )
        body = ExpertsSpec(active, Linear("router"), experts, scales="scales")
        other, norm = Linear("other"), Norm(None, 1e-6)
        mixer = AttentionSpec(0, 0, 1, 1, 6, 1.0, None, None, other, None, None, other)
        self._layer = LayerSpec(norm, mixer, (Branch(norm, body),))
        spec = ModelSpec("handmade", 3, 6, 8, "other", 1.0, (self._layer,), norm, "other", ())
        weights = Weights(MemorySource("handmade", {}, self.arrays))
        norms, products = Norms(spec, weights), DequantizedProducts(spec, weights)
        self._feed = FeedForwards(spec, weights, norms, products)

    def branches(self, x: torch.Tensor) -> torch.Tensor:
        return self._feed.branches(x, self._layer)

    def likely(self, row: torch.Tensor) -> torch.Tensor:
        """Probabilities of all experts in float64."""
        return (torch.from_numpy(self.arrays["router"]).double() @ bare_norm(row)).softmax(0)

    def by_hand(self, row: torch.Tensor, shares: Mapping[int, float]) -> torch.Tensor:
        """One row through experts with the given shares, in float64."""
        out = torch.zeros(6, dtype=torch.float64)
        for expert, share in shares.items():
            both, down = (
                torch.from_numpy(self.arrays[n][expert]).double() for n in ("both", "down")
            )
            gate, up = (both @ bare_norm(row)).view(2, 5)
            out += share * (expert + 1) * (down @ (gate * torch.sigmoid(gate) * up))
        return out


def bare_norm(x: torch.Tensor) -> torch.Tensor:
    """The norm without a weight, in float64."""
    return x.double() / (x.double().square().mean(-1, keepdim=True) + 1e-6).sqrt()


@pytest.mark.parametrize("active", [1, 2, 3])
def test_the_lower_index_counts_first_among_equal_experts(active: int) -> None:
    """All eight are equally likely; scales and outputs tell which were taken."""
    mixture = Mixture(np.zeros((8, 6)), active)
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    found = mixture.branches(x)
    for row in range(4):
        wanted = mixture.by_hand(x[row], dict.fromkeys(range(active), 1 / active))
        assert relative_l2(found[row], wanted) < 1e-6


def test_each_row_takes_its_own_experts_with_its_own_weights() -> None:
    mixture = Mixture(np.random.default_rng(9).standard_normal((8, 6)), 3)
    x = torch.randn(40, 6, generator=torch.Generator().manual_seed(2))
    found, taken = mixture.branches(x), set()
    for row in range(40):
        likely = mixture.likely(x[row])
        best = likely.argsort(descending=True)[:3]
        shares = dict(zip(best.tolist(), (likely[best] / likely[best].sum()).tolist(), strict=True))
        taken.add(frozenset(shares))
        assert relative_l2(found[row], mixture.by_hand(x[row], shares)) < 2e-6
    assert len(taken) > 10


def test_a_norm_without_weight_only_scales() -> None:
    model = reference("gemma4 dense")
    spec = gemma4_spec(model)
    norms = Norms(spec, Weights(source_of(model)))
    bare = spec.attentions[0].value_norm
    assert bare is not None and bare.weight is None
    x = torch.randn(3, 2, 7)
    assert relative_l2(norms.apply(x, bare), bare_norm(x)) < 1e-6
    assert norms.after(x, None) is x
