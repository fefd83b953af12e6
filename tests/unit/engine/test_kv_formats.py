"""K and V in every format: what is stored, what is read back, and what attention makes of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.cache.formats import FP8_LARGEST, KvFormat
from engine.cache.kv import DTYPES
from engine.forward.attention import attend, row_blocks
from engine.forward.pages import CODES, LayerPages, fp8_codes
from tests.helpers.checkpoints.variants import make, random_ids
from tests.helpers.contiguous_attention import contiguous_attention
from tests.helpers.handmade.gemma4 import gemma4_spec
from tests.helpers.handmade.parts import source_of
from tests.helpers.handmade.qwen import qwen_spec
from tests.helpers.lone_model import FP8_NAN, LoneModel, relative_l2
from tests.helpers.memory_source import VOCABULARY, tiny_source

KV_HEADS, REPEAT, SCALE = 2, 3, 0.4
NARROW = [KvFormat.FP16, KvFormat.BF16, KvFormat.FP8]
FAMILIES = ["llama", "gemma3"]
IDS = torch.randint(0, VOCABULARY, (600,), generator=torch.Generator().manual_seed(5)).tolist()
LARGEST_FLOAT = torch.finfo(torch.float32).max


def empty(kv_format: KvFormat, pages: int, head_dim: int) -> LayerPages:
    """Pages full of NaN."""
    shape = (pages, 2, KV_HEADS, 256, head_dim)
    if kv_format is not KvFormat.FP8:
        return LayerPages(torch.full(shape, float("nan"), dtype=DTYPES[kv_format]))
    codes = torch.full(shape, FP8_NAN, dtype=torch.uint8)
    return LayerPages(codes, torch.full(shape[:-1], float("nan")))


def e4m3_values() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Every code's value from the format's definition alone; NaN for the two NaN codes."""
    values = []
    for code in range(256):
        exponent, fraction = code >> 3 & 15, code & 7
        size = (8 + fraction) * 2.0 ** (exponent - 10) if exponent else fraction * 2.0**-9
        values.append(np.nan if code & 0x7F == 0x7F else -size if code & 0x80 else size)
    return np.array(values)


E4M3 = e4m3_values()


def nearest_codes(row: np.ndarray[tuple[int], np.dtype[np.float32]]) -> list[int]:
    """The rule of FP8 for one row of one head, by search through all codes; ties to even."""
    scale = np.float32(np.abs(row).max() / np.float32(FP8_LARGEST))
    if scale == 0:
        return [0] * len(row)
    values = (row / scale).astype(np.float64)[:, None]
    far = np.abs(E4M3 - values)
    far[np.isnan(far) | (np.signbit(E4M3) != np.signbit(values))] = np.inf
    near = far == far.min(1, keepdims=True)
    even = near & (np.arange(256) % 2 == 0)
    return [int(code) for code in np.where(even.any(1), even.argmax(1), near.argmax(1))]


def test_the_table_of_codes_is_the_format_s_definition() -> None:
    assert np.array_equal(CODES.numpy(), E4M3.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("head_dim", [1, 5, 12, 64])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_each_row_of_each_head_gets_the_nearest_codes_and_its_own_scale(
    head_dim: int, size: float
) -> None:
    rows = size * torch.randn(7, 3, head_dim, generator=torch.Generator().manual_seed(head_dim))
    rows[0, 0] = torch.linspace(-448.0, 448.0, head_dim) * size
    codes, scales = fp8_codes(rows)
    for row, head in np.ndindex(7, 3):
        assert codes[row, head].tolist() == nearest_codes(rows[row, head].numpy())
        assert scales[row, head] == rows[row, head].abs().max() / 448
    assert (codes & 0x7F == 0x7E).any(-1).all(), "the largest element has the largest code"


def test_halves_between_two_codes_go_to_the_even_one() -> None:
    values = E4M3[:127]
    middles = torch.from_numpy((values[:-1] + values[1:]) / 2).float()
    row = torch.cat([middles, -middles, torch.tensor([448.0])])
    codes, scales = fp8_codes(row[None])
    assert scales.item() == 1.0
    wanted = [code + code % 2 for code in range(126)]
    assert codes[0].tolist() == [*wanted, *(code | 0x80 for code in wanted), 126]


@pytest.mark.parametrize(
    ("row", "codes", "scale"),
    [
        ([0.0, 0.0, 0.0], [0, 0, 0], 0.0),
        ([float("nan"), 2.0, -1.0], [0, 126, 246], 2.0 / 448),
        ([float("nan")] * 3, [0, 0, 0], 0.0),
        ([float("inf"), 1.0, -float("inf")], [126, 0, 254], LARGEST_FLOAT / 448),
        ([LARGEST_FLOAT, -LARGEST_FLOAT, 0.0], [126, 254, 0], LARGEST_FLOAT / 448),
        ([1e-45, 0.0, 0.0], [0, 0, 0], 0.0),
    ],
)
def test_what_no_code_can_hold_is_stored_finite(
    row: list[float], codes: list[int], scale: float
) -> None:
    """A NaN as 0, an infinity as the largest float32; one wild row never spoils another."""
    found, scales = fp8_codes(torch.tensor([row, [1.0, 2.0, 3.0]]))
    assert found[0].tolist() == codes
    assert scales[0] == torch.tensor(scale)
    assert found[1].tolist() == nearest_codes(np.array([1, 2, 3], np.float32))
    assert (CODES[found.int()] * scales[:, None]).isfinite().all()


@pytest.mark.parametrize("kv_format", NARROW)
def test_a_wild_value_is_stored_as_the_largest_of_the_format(kv_format: KvFormat) -> None:
    pages = empty(kv_format, 1, 5)
    rows = torch.ones(1, KV_HEADS, 5)
    rows[0, 0, :2] = torch.tensor([float("inf"), -1e38])
    pages.write(1, 0, slice(3, 4), rows)
    found = pages.read(0, 3, 4)[1, :, 0]
    assert found.isfinite().all()
    if kv_format is not KvFormat.FP8:
        largest = torch.finfo(DTYPES[kv_format]).max
        assert found[0, :2].tolist() == [largest, max(-largest, found[0, 1].item())]
    assert torch.equal(found[1], torch.ones(5))


@pytest.mark.parametrize("kv_format", list(KvFormat))
def test_what_is_written_touches_its_slots_only(kv_format: KvFormat) -> None:
    pages = empty(kv_format, 3, 7)
    rows = torch.randn(4, KV_HEADS, 7, generator=torch.Generator().manual_seed(1))
    pages.write(0, 1, slice(250, 254), rows)
    pages.write(1, 1, slice(250, 254), -rows)
    found = pages.read(1, 250, 254)
    assert torch.equal(found[0], -found[1])
    assert relative_l2(found[0].transpose(0, 1), rows) < (
        0.04 if kv_format is KvFormat.FP8 else 4e-3
    )
    for page in range(3):
        for first, end in ((0, 250), (254, 256)):
            assert pages.read(page, first, end).isnan().all()
    assert pages.read(0, 250, 254).isnan().all()


@pytest.mark.parametrize("kv_format", list(KvFormat))
@pytest.mark.parametrize("head_dim", [5, 12])
@pytest.mark.parametrize(
    ("position", "rows", "window"),
    [(0, 17, None), (512, 256, None), (700, 1, None), (512, 131, 300), (700, 1, 190)],
)
def test_paged_attention_is_that_over_the_values_which_the_pages_stand_for(
    kv_format: KvFormat, head_dim: int, position: int, rows: int, window: int | None
) -> None:
    """Against float64 over gathered, dequantized rows; what no row sees is NaN throughout."""
    draw = torch.Generator().manual_seed(position + head_dim)
    pages, table, length = empty(kv_format, 6, head_dim), [4, 0, 3], position + rows
    oldest = 0 if window is None else max(0, position - window + 1)
    gathered = torch.full((2, KV_HEADS, length, head_dim), float("nan"), dtype=torch.float64)
    for at in range(oldest, length):
        for side in (0, 1):
            row = torch.randn(1, KV_HEADS, head_dim, generator=draw)
            pages.write(side, table[at // 256], slice(at % 256, at % 256 + 1), row)
        stored = pages.stored[table[at // 256], :, :, at % 256]
        if pages.scales is None:
            gathered[:, :, at] = stored.double()
        else:
            values = torch.from_numpy(E4M3)[stored.long()]
            gathered[:, :, at] = values * pages.scales[table[at // 256], :, :, at % 256, None]
    query = torch.randn(KV_HEADS * REPEAT, rows, head_dim, generator=draw)
    blocks = row_blocks(np.array(table, np.int32), range(position, length), window, REPEAT)
    wanted = contiguous_attention(
        query, gathered[0], gathered[1], position=position, window=window, scale=SCALE
    )

    def paged() -> torch.Tensor:
        turned = query.view(KV_HEADS, REPEAT, rows, head_dim).transpose(1, 2)
        mixed = attend(turned.reshape(KV_HEADS, -1, head_dim), pages, blocks, SCALE)
        return mixed.view(turned.shape).transpose(1, 2).reshape(query.shape)

    assert relative_l2(paged(), wanted) < 1e-6
    if pages.scales is not None:
        pages.scales.copy_(pages.scales.flip(2))
        assert relative_l2(paged(), wanted) > 1e-2, "the control: scales of the wrong heads"


@pytest.mark.parametrize("family", FAMILIES)
def test_narrower_pages_cost_accuracy_in_the_order_of_their_bits(family: str) -> None:
    """Across page borders and windows, with pages that are not the lane's full of NaN."""
    found = {}
    for kv_format in KvFormat:
        with LoneModel(tiny_source(family), 600, kv_format=kv_format) as lone:
            found[kv_format] = lone.all_logits(IDS)
    exact = found[KvFormat.FP32]
    costs = [relative_l2(found[kv_format], exact) for kv_format in NARROW]
    assert 1e-5 < costs[0] < costs[1] < costs[2]
    assert costs[0] < 2e-3 and costs[1] < 1.5e-2 and costs[2] < 1e-1


@pytest.mark.parametrize("name", ["gemma4 per layer", "gemma4 dense", "qwen3_5"])
def test_shared_pages_windows_and_recurrent_layers_run_on_codes(name: str) -> None:
    """Layers that share another's K and V, which may be one tensor, read the same codes."""
    model = make(name)
    spec = qwen_spec(model) if name.startswith("qwen") else gemma4_spec(model)
    ids, found = random_ids(308), []
    for kv_format in (KvFormat.FP32, KvFormat.FP8):
        with LoneModel(source_of(model), 308, spec=spec, kv_format=kv_format) as lone:
            logits = lone.all_logits(ids[:300])
            steps = torch.stack([lone.step(token) for token in ids[300:]])
            found.append(torch.cat([logits, steps]))
    assert found[1].isfinite().all()
    assert 1e-3 < relative_l2(found[1], found[0]) < 2e-1


def test_a_row_s_codes_do_not_depend_on_the_rows_beside_it() -> None:
    """A prompt of two chunks and one that was cut shorter leave the same codes and scales."""
    held = []
    for rows in (300, 400):
        with LoneModel(tiny_source("gemma3"), 400, kv_format=KvFormat.FP8) as lone:
            lone.prompt(IDS[:256])
            lone.lane.extend(rows - 256)
            lone.runner.prompt_chunk(lone.lane, IDS[256:rows], 256)
            held.append([tensor.clone() for tensor in (*lone.kv.tensors, *lone.kv.scales)])
    for one, other in zip(*held, strict=True):
        assert torch.equal(one[:, 0].nan_to_num(7.0), other[:, 0].nan_to_num(7.0))
