"""Recurrent states in slots: a resumed pass is a cold one, wherever on the grid it was cut."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
import torch

from engine.cache.lane import Lane
from engine.errors import InvariantBroken
from engine.forward import DequantizedProducts, TorchForward, TorchRunner, Weights
from engine.models.spec import DeltaSpec, ModelSpec
from tests.helpers.checkpoints.variants import make, random_ids
from tests.helpers.handmade.parts import source_of
from tests.helpers.handmade.qwen import qwen_spec
from tests.helpers.lone_model import LoneModel, relative_l2
from tests.helpers.memory_source import MemorySource

ROWS = 1000
IDS = random_ids(ROWS + 20)
CUTS = [cuts for count in (1, 2, 3) for cuts in itertools.combinations((256, 512, 768), count)]


@cache
def tiny() -> tuple[MemorySource, ModelSpec]:
    """Five layers, the fourth with attention, the others recurrent."""
    model = make("qwen3_5")
    return source_of(model), qwen_spec(model)


def opened(rows: int = ROWS + 20) -> LoneModel:
    source, spec = tiny()
    return LoneModel(source, rows, spec=spec)


def prompt(lone: LoneModel, ids: Sequence[int], *, asks: bool) -> torch.Tensor:
    """The rows after what the lane holds; without ``asks`` only the last chunk gives logits."""
    logits = torch.empty(0)
    for first in range(lone.lane.length, len(ids), 256):
        part = ids[first : first + 256]
        lone.lane.extend(len(part))
        wanted = asks or first + len(part) == len(ids)
        logits = lone.runner.prompt_chunk(lone.lane, part, first, wants_logits=wanted)
    return logits


def resume(lone: LoneModel) -> None:
    """Keep a state, give up the lane, ruin what it had, and open another from the state."""
    assert lone.slots is not None and lone.recurrent is not None
    kept = lone.lane.share(lone.lane.length)
    assert kept is not None and kept.slot is not None
    lone.lane.close()
    lone.recurrent.states[[slot for slot in range(3) if slot != kept.slot]] = float("nan")
    lone.recurrent.tails[[slot for slot in range(3) if slot != kept.slot]] = float("nan")
    lane = Lane.open(lone.memory, ROWS + 20, 256, resumed=kept)
    assert isinstance(lane, Lane)
    kept.release(lone.pools, lone.slots)
    lone.lane = lane


def left(lone: LoneModel, logits: torch.Tensor) -> list[torch.Tensor]:
    """Logits, K and V, states and tails after a pass."""
    assert lone.recurrent is not None
    held = [int(page) for page in lone.lane.table(0) if page >= 0]
    arena = lone.kv.tensors[0]
    pages = torch.cat([arena[:, page] for page in held], -2)[..., : lone.lane.length, :]
    slot = lone.lane.recurrent_slot
    return [logits, pages, lone.recurrent.states[slot].clone(), lone.recurrent.tails[slot].clone()]


@cache
def cold() -> list[torch.Tensor]:
    with opened() as lone:
        return left(lone, prompt(lone, IDS[:ROWS], asks=False))


def equal(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> list[bool]:
    assert all(part.isfinite().all() for part in found)
    return [torch.equal(*pair) for pair in zip(found, wanted, strict=True)]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("asks", [False, True])
def test_a_pass_resumed_on_the_grid_has_the_bits_of_a_cold_one(
    cuts: tuple[int, ...], asks: bool
) -> None:
    with opened() as lone:
        for cut in cuts:
            prompt(lone, IDS[:cut], asks=asks)
            resume(lone)
        assert equal(left(lone, prompt(lone, IDS[:ROWS], asks=asks)), cold()) == [True] * 4


def test_one_other_token_before_the_cut_changes_every_part() -> None:
    """The control: the state really carries what was read."""
    with opened() as lone:
        prompt(lone, [(IDS[0] + 1) % 1000, *IDS[1:768]], asks=False)
        resume(lone)
        found = left(lone, prompt(lone, IDS[:ROWS], asks=False))
    assert not any(equal(found, cold()))


def test_rows_that_were_generated_are_not_a_prompt_s_bits() -> None:
    """The control of the form: near, and not equal."""
    with opened() as lone:
        prompt(lone, IDS[: ROWS - 10], asks=False)
        for token in IDS[ROWS - 10 : ROWS]:
            logits = lone.step(token)
        found = left(lone, logits)
    assert not equal(found, cold())[2]
    assert all(relative_l2(*pair) < 2e-5 for pair in zip(found, cold(), strict=True))


def test_a_slot_that_was_not_cleared_shows() -> None:
    """The control of the poison."""
    with opened() as lone:
        assert lone.recurrent is not None
        lone.recurrent.states.fill_(float("nan"))
        assert not prompt(lone, IDS[:10], asks=True).isfinite().any()


def test_the_last_row_alone_is_the_last_of_all_rows_and_leaves_the_same_state() -> None:
    """The last layer is recurrent: every row moves its state, whoever wants logits."""
    assert isinstance(tiny()[1].layers[-1].mixer, DeltaSpec)
    with opened() as lone:
        every = lone.all_logits(IDS[:300])
        assert lone.recurrent is not None
        states, tails = lone.recurrent.states[0].clone(), lone.recurrent.tails[0].clone()
    for asks in (False, True):
        with opened() as lone:
            last = prompt(lone, IDS[:300], asks=asks)
            assert lone.recurrent is not None
            assert torch.equal(lone.recurrent.states[0], states)
            assert torch.equal(lone.recurrent.tails[0], tails)
        assert relative_l2(last, every[-1]) < 2e-6
    with opened() as lone:
        lone.lane.extend(256)
        assert lone.runner.prompt_chunk(lone.lane, IDS[:256], 0, wants_logits=False).shape == (0,)
        lone.lane.extend(44)
        lone.runner.prompt_chunk(lone.lane, IDS[256:300], 256, wants_logits=False)
        assert lone.recurrent is not None
        assert torch.equal(lone.recurrent.states[0], states)


def test_tails_are_the_newest_inputs_of_the_convolution_the_oldest_first() -> None:
    """One recurrent layer reads embeddings alone, so its inputs can be had by hand."""
    source, spec = tiny()
    delta = spec.layers[0].mixer
    assert isinstance(delta, DeltaSpec)
    weights = Weights(source)
    for rows in (2, 3, 100):
        with opened() as lone:
            prompt(lone, IDS[:rows], asks=False)
            assert lone.recurrent is not None
            tail = lone.recurrent.tails[0, 0].clone()
        x = weights.rows(spec.embedding, IDS[:rows])
        norm = spec.layers[0].mixer_norm
        x = x * (x.square().mean(-1, keepdim=True) + norm.eps).rsqrt() * weights.norm(norm)
        inputs = x @ weights.whole(delta.mixed.weight).t()
        wanted = torch.cat([torch.zeros(3, delta.channels), inputs])[-3:]
        assert relative_l2(tail, wanted) < 1e-6


def test_lanes_that_step_together_keep_to_their_own_slots() -> None:
    with opened(400) as lone:
        prompt(lone, IDS[:77], asks=False)
        alone = [lone.step(token) for token in IDS[77:80]]
    with opened(400) as lone:
        prompt(lone, IDS[:77], asks=False)
        other = Lane.open(lone.memory, 50, 256)
        assert isinstance(other, Lane)
        with other:
            other.extend(40)
            lone.runner.prompt_chunk(other, IDS[:40], 0)
            for at, token in enumerate(IDS[77:80]):
                lone.lane.extend(1)
                other.extend(1)
                lanes, ids = [other, lone.lane], [5, token]
                both = lone.runner.step(lanes, ids, [40 + at, 77 + at])
                assert torch.equal(both[1], alone[at])
                assert not torch.equal(both[0], alone[at])


def test_a_recurrent_model_without_states_is_refused() -> None:
    source, spec = tiny()
    weights = Weights(source)
    products = DequantizedProducts(spec, weights)
    with opened() as lone:
        with pytest.raises(InvariantBroken, match="without recurrent states"):
            TorchForward(spec, weights, products, lone.kv)
        runner = TorchRunner(spec, weights, products, lone.kv, lone.recurrent)
        stateless = Lane.open(replace(lone.memory, slots=None), 10, 256)
        assert isinstance(stateless, Lane)
        with stateless:
            stateless.extend(1)
            with pytest.raises(InvariantBroken, match="without a state"):
                runner.prompt_chunk(stateless, IDS[:1], 0)
