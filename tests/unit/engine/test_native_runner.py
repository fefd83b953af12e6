"""The native runner against torch in float32 on tiny models, and its own rows in any company.

fp16 pages are the largest part of the difference: the same torch with fp16 pages is ten to fifty
times nearer. Measured: 6e-4 against float32 pages, 1.5e-5 (prompts) and 1.4e-4 (steps, int16
activations) against fp16 pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from engine.cache.formats import KvFormat
from engine.errors import InvariantBroken
from engine.forward import Weights
from engine.forward.products import linears
from engine.models import model_spec
from engine.models.spec import Linear, RowRuns
from engine.native import NativeRunner, StoredWeights, native_sizes, unsupported_by_native
from kernels.cpu.library import Library, Pool
from kernels.quant.facts import FACTS
from tests.helpers.cpu_library import Inputs, multiply, plain_rows
from tests.helpers.lone_model import relative_l2
from tests.helpers.memory_source import VOCABULARY, tiny_source
from tests.helpers.native_model import Both, NativeSide, TorchSide, last_row, prompt, steps
from tests.helpers.stored_source import StoredSource, wide_source

FP16_PAGES = 3e-3
SAME_PAGES = 4e-4
IDS = torch.randint(0, VOCABULARY, (620,), generator=torch.Generator().manual_seed(3)).tolist()
MIXED = {
    "attn_q.": "q4_k",
    "attn_k.": "q5_k",
    "attn_v.": "q6_k",
    "attn_output": "q3_k",
    "ffn_gate": "iq2_xxs",
    "ffn_up": "iq4_xs",
    "ffn_down": "q2_k",
    "token_embd": "q8_0",
}


WIDE_256: dict[str, Any] = {
    "embedding_length": 256,
    "feed_forward_length": 256,
    "attention__head_count": 8,
    "attention__key_length": 32,
}


def mixed_source() -> StoredSource:
    """Every product in another format, one of them unknown to the library, a tied q8_0 head."""
    return wide_source(formats=MIXED, **WIDE_256)


def biased_source() -> StoredSource:
    """Biases on query, key, value and down, a head of its own, heads turned in part."""
    draw = np.random.default_rng(1)
    widths = {"attn_q": 96, "attn_k": 32, "attn_v": 32, "ffn_down": 96}
    biases = {
        f"blk.{layer}.{part}.bias": draw.standard_normal(width).astype(np.float32)
        for layer in range(2)
        for part, width in widths.items()
    }
    head = draw.standard_normal((VOCABULARY, 96)).astype(np.float32) / 10
    return wide_source(
        arrays=biases | {"output.weight": head},
        formats={"attn_q": "q4_0", "ffn_down": "q5_1"},
        rope__dimension_count=8,
    )


SOURCES = {
    "llama": wide_source,
    "gemma3": lambda: wide_source("gemma3", formats={"ffn_up": "q4_1", "attn_output": "q8_0"}),
    "mixed formats": mixed_source,
    "biases and a head": biased_source,
}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> StoredSource:
    made: StoredSource = SOURCES[request.param]()
    return made


def test_prompts_and_steps_are_those_of_float32_torch(source: StoredSource) -> None:
    """Across page borders and, for gemma3, past the sliding window; every row of both."""
    exact, halves = TorchSide(source, 640), TorchSide(source, 640, KvFormat.FP16)
    with NativeSide(source, 640) as native:
        sides: tuple[Both, ...] = (exact, halves, native)
        lanes = [side.lane() for side in sides]
        prompts = [prompt(side, lane, IDS[:505]) for side, lane in zip(sides, lanes, strict=True)]
        stepped = [steps(side, lane, IDS[505:520]) for side, lane in zip(sides, lanes, strict=True)]
        for lane in lanes:
            lane.close()
    for of_exact, of_halves, found in (prompts, stepped):
        assert found.isfinite().all()
        assert relative_l2(found, of_exact) < FP16_PAGES
        assert relative_l2(found, of_halves) < SAME_PAGES
    assert relative_l2(prompts[2][:-1], prompts[0][1:]) > 0.5, "the control"


def test_the_engine_s_path_gives_the_last_of_all_rows(source: StoredSource) -> None:
    """The tail of one row has the bits of every row's tail."""
    with NativeSide(source, 640) as native, native.lane() as lane, native.lane() as other:
        every = prompt(native, lane, IDS[:301])
        last = last_row(native, other, IDS[:301])
    assert torch.equal(last, every[-1])
    assert not torch.equal(last, every[-2]), "the control"


def test_a_step_has_the_same_bits_beside_others_and_on_any_threads() -> None:
    source = wide_source(formats={"ffn_up": "q4_k"}, embedding_length=256)
    alone, beside = [], []
    for threads in (1, 2):
        with NativeSide(source, 400, threads=threads) as native:
            with native.lane() as lane:
                prompt(native, lane, IDS[:255])
                alone.append(steps(native, lane, [7, 8]))
            with native.lane() as lane, native.lane() as other:
                prompt(native, other, IDS[:31])
                prompt(native, lane, IDS[:255])
                found = []
                for token, position in ((7, 255), (8, 256)):
                    lane.extend(1)
                    other.extend(1)
                    both = native.runner.step(
                        [other, lane], [3, token], [other.length - 1, position]
                    )
                    found.append(both[1].clone())
                beside.append(torch.stack(found))
    assert all(torch.equal(each, alone[0]) for each in (*alone, *beside))
    assert not torch.equal(alone[0][0], alone[0][1]), "the control"


def test_a_prompt_s_row_has_the_same_bits_whatever_follows_it() -> None:
    source = wide_source(formats={"ffn_up": "q4_1"})
    with NativeSide(source, 640) as native:
        found = []
        for length in (270, 305, 512):
            with native.lane() as lane:
                found.append(prompt(native, lane, IDS[:length])[:270])
    assert torch.equal(found[1], found[2])
    assert torch.equal(found[0], found[2])


def test_pages_of_nobody_are_neither_read_nor_written() -> None:
    source = wide_source("gemma3")
    with NativeSide(source, 640) as native, native.lane() as lane:
        logits = prompt(native, lane, IDS[:300])
        held = [set(lane.table(group).tolist()) for group in range(len(native.pools))]
        for tensor, pages in zip(native.kv.tensors, held, strict=True):
            free = [page for page in range(tensor.shape[1]) if page not in pages]
            assert tensor[:, free].isnan().all()
    assert logits.isfinite().all()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"embedding_length": 90}, "width of 90 is no multiple of 32"),
        ({"feed_forward_length": 100}, "feed-forward width of 100 is no multiple of 32"),
        ({"attention__key_length": 20}, "heads of 20 are no multiple of 16"),
        ({"attention__head_count": 3, "attention__head_count_kv": 1}, "3 heads are no multiple"),
    ],
)
def test_widths_that_do_not_run_natively_are_named(changed: dict[str, Any], sentence: str) -> None:
    spec = model_spec(wide_source(**changed))
    assert sentence in str(unsupported_by_native(spec))
    assert unsupported_by_native(model_spec(wide_source())) is None


def test_chunks_off_the_grid_and_steps_too_wide_are_refused() -> None:
    with NativeSide(wide_source(), 640, streams=2) as native, native.lane() as lane:
        lane.extend(256)
        with pytest.raises(InvariantBroken, match="off the grid"):
            native.runner.prompt_chunk(lane, [1], 255)
        with pytest.raises(InvariantBroken, match="257 rows"):
            native.runner.prompt_chunk(lane, [1] * 257, 0)
        with pytest.raises(InvariantBroken, match="0 rows"):
            native.runner.step([], [], [])
        with pytest.raises(InvariantBroken, match="3 rows"):
            native.runner.step([lane] * 3, [1] * 3, [0] * 3)
        assert native.runner.prompt_chunk(lane, [1], 0, wants_logits=False).shape == (0,)


@pytest.fixture
def one_thread() -> Iterator[Pool]:
    with Pool(Library(), 1) as pool:
        yield pool


class TestStoredWeights:
    """Where a matrix lies, and what it takes."""

    def test_the_arena_holds_each_laid_out_matrix_once(self, one_thread: Pool) -> None:
        source = mixed_source()
        products = linears(model_spec(source))
        weights = StoredWeights(source, Library(), one_thread)
        laid = [x for x in dict.fromkeys(linear.weight for linear in products)
                if source.tensors[x].format in ("q4_k", "q5_k", "q6_k", "q8_0")]  # fmt: skip
        sizes = [one_thread.layout_bytes(weights.file_rows(name)) for name in laid]
        assert weights.arena_bytes(products) == sum(-(-size // 64) * 64 for size in sizes)
        assert len(laid) == 3 * 2 + 1, "the tied head is laid out, and once"
        done = list(weights.lay_out(products))
        assert sum(done) == sum(source.tensors[x].size_bytes for x in {p.weight for p in products})
        records = [weights.product(Linear(name)) for name in laid]
        spans = sorted(
            (record.bytes, record.bytes + size) for record, size in zip(records, sizes, strict=True)
        )
        assert all(record.is_strips for record in records)
        assert all(start % 64 == spans[0][0] % 64 for start, _ in spans)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        weights.close()

    def test_a_foreign_format_is_kept_as_float32(self, one_thread: Pool) -> None:
        source = mixed_source()
        weights = StoredWeights(source, Library(), one_thread)
        record = weights.file_rows("blk.1.ffn_gate.weight")
        assert (record.format, record.row_bytes) == (FACTS["f32"].type_id, 4 * 256)
        found = torch.full((256, 256), float("nan"))
        one_thread.decode(record, 0, found)
        assert torch.equal(found, Weights(source).whole("blk.1.ffn_gate.weight"))
        products = linears(model_spec(source))
        assert weights.copied_bytes(products) == 2 * 256 * 256 * 4
        weights.close()

    @pytest.mark.parametrize("name", ["q4_1", "f16", "iq2_xxs"])
    @pytest.mark.parametrize("runs", [((5, 40),), ((64, 3), (0, 17), (90, 1))])
    def test_rows_cut_out_of_a_matrix_are_those_rows(
        self, one_thread: Pool, name: str, runs: RowRuns
    ) -> None:
        """In strips, read in place or from a copy, and decoded; the bytes are counted before."""
        source = wide_source(formats={"ffn_up": name}, **WIDE_256)
        cut = Linear("blk.0.ffn_up.weight", None, runs)
        weights = StoredWeights(source, Library(), one_thread)
        promised = weights.arena_bytes([cut]) + weights.copied_bytes([cut])
        assert sum(weights.lay_out([cut])) == weights.stored_bytes([cut])
        wanted = Weights(source).linear(cut)
        weight = weights.product(cut)
        assert (weight.rows, weight.columns) == wanted.shape
        unit = Inputs.of(one_thread, torch.eye(256), codes=False)
        found = multiply(one_thread, unit, [weight], plain_rows(256).record(), dense=True)
        assert torch.equal(found.values.T, wanted)
        in_place = name == "f16" and len(runs) == 1
        assert (promised == 0) == in_place
        assert bool(weight.is_strips) == (name == "q4_1")
        weights.close()

    def test_two_closes_free_once(self, one_thread: Pool) -> None:
        source = wide_source(formats={"ffn_up": "q4_1"})
        weights = StoredWeights(source, Library(), one_thread)
        products = linears(model_spec(source))
        for _ in weights.lay_out(products):
            pass
        weights.close()
        weights.close()
        assert not weights.product(products[5]).is_strips, "nothing is laid out any more"


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_the_buffers_take_exactly_what_was_counted(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tensor that is made while a runner is built, against ``total_bytes``."""
    with NativeSide(wide_source(architecture), 640, threads=2, streams=3) as native:
        made: list[torch.Tensor] = []
        for name in ("zeros", "empty"):
            plain = getattr(torch, name)

            def counted(*shape: int, plain: object = plain, **more: object) -> torch.Tensor:
                made.append(plain(*shape, **more))  # type: ignore[operator]
                return made[-1]

            monkeypatch.setattr(torch, name, counted)
        NativeRunner(native.spec, native.weights, native.kv, native.pool, native.sizes)
        assert sum(tensor.nbytes for tensor in made) == native.sizes.total_bytes
        wider = native_sizes(native.spec, 640, 4, native.pool)
        assert wider.total_bytes > native.sizes.total_bytes
        wider_branches = replace(native.sizes.branches, step_rows=4)
        assert wider == replace(native.sizes, step_rows=4, branches=wider_branches)


def test_odd_widths_are_what_the_other_tests_call_tiny() -> None:
    """The control: the tiny checkpoints of the torch tests do not run here."""
    assert unsupported_by_native(model_spec(tiny_source())) is not None
