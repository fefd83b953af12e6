"""``hearth plan`` without a process: sizes, GPUs, names, and what is printed of an answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from app.cli.options import PlanOptions, parse
from app.cli.planning.command import is_hub_name
from app.cli.planning.report import PlanReport, PoolReport, report_of
from app.cli.planning.sizes import size_bytes
from app.cli.planning.table import sentences
from app.errors import InputInvalid
from engine.protocol import GpuFacts, PlanLine, Planned, PoolFacts

GIB = 1 << 30
GPU = GpuFacts(name="RTX 4090", total_bytes=24 * GIB, free_bytes=23 * GIB)


def options(*arguments: str) -> PlanOptions:
    found = parse(["plan", *arguments])
    assert isinstance(found, PlanOptions)
    return found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("12GB", 12_000_000_000),
        ("12GiB", 12 * GIB),
        ("12 gib", 12 * GIB),
        ("11.5GiB", 23 * GIB // 2),
        ("0.1GiB", GIB // 10),
        ("1024MiB", GIB),
        ("512kb", 512_000),
        ("1TiB", 1024 * GIB),
        ("25769803776", 24 * GIB),
        ("7 bytes", 7),
    ],
)
def test_a_size_is_read_as_it_is_written(text: str, wanted: int) -> None:
    assert size_bytes(text) == wanted


@pytest.mark.parametrize(
    "gpu",
    ["", "RTX 4090", ",24GiB,23GiB", "x,24GiB,25GiB", "x,0,0", "x,-1GiB,1", "x,24,23,22", "x,nan,1",
     "x,12G1B,1", "x,1e9,1", "x,99999TiB,1", "x,١٢GB,1GB"],
)  # fmt: skip
def test_a_gpu_that_cannot_be_is_one_sentence(gpu: str) -> None:
    with pytest.raises(InputInvalid) as refused:
        options("model", f"--gpu={gpu}")
    assert "\n" not in refused.value.sentence
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [(), (" ",), ("m", "--context", "0"), ("m", "--context", "x"), ("m", "--chats", "0"),
     ("m", "--chats", "65"), ("m", "--kv", "fp4"), ("m", "n")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(InputInvalid):
        options(*arguments)


def test_a_wish_is_read_whole() -> None:
    found = options(
        "a/b:Q4_K_M", "--gpu", "RTX 4090, 24GiB, 23GiB", "--context", "32,768", "--chats", "2",
        "--kv", "fp8", "--json",
    )  # fmt: skip
    assert found == PlanOptions(None, "a/b:Q4_K_M", 32_768, 2, "fp8", GPU, True)
    assert options("m", "--gpu", "x,8GiB").gpu == GpuFacts(
        name="x", total_bytes=8 * GIB, free_bytes=8 * GIB
    )
    plain = options("m")
    assert (plain.context, plain.chats, plain.kv, plain.gpu, plain.json) == (
        *(None, 4, "full", None, False),
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("unsloth/Qwen3.5-4B-GGUF", True),
        ("unsloth/Qwen3.5-4B-GGUF:Q4_K_M", True),
        ("unsloth/x/sub/file.gguf", True),
        ("models/file.gguf", False),
        ("./models/file", False),
        ("../a/b", False),
        ("a/../b", False),
        ("/models/file", False),
        ("file.gguf", False),
        ("C:\\models\\x", False),
    ],
)
def test_a_name_of_the_hub_is_told_from_a_path(text: str, wanted: bool) -> None:
    assert is_hub_name(text) is wanted


def answer(refusal: str | None = None) -> Planned:
    return Planned(
        request=1,
        context_tokens=16_384,
        lines=(
            PlanLine(pool="gpu0", owner="weights", bytes=15 * GIB + 1, reason="in their own bits"),
            PlanLine(pool="gpu0", owner="logits", bytes=1, reason="word " * 40),
            PlanLine(pool="pinned", owner="kept states in memory", bytes=8 * GIB, reason="left"),
        ),
        refusal=refusal,
        device="GPU, RTX 4090",
        streams=2,
        kv_format="bf16",
        chunk_rows=512,
        placement=None if refusal else "smaller-chunks",
        fitting_context_tokens=2048 if refusal else 0,
        pools=(
            PoolFacts(
                name="gpu0",
                capacity_bytes=21 * GIB,
                free_bytes=21 * GIB,
                total_bytes=24 * GIB,
                holders=(("other programs", GIB),),
            ),
            PoolFacts(name="ram", capacity_bytes=9 * GIB, free_bytes=9 * GIB),
            PoolFacts(name="pinned", capacity_bytes=9 * GIB, free_bytes=9 * GIB),
        ),
    )


def report(refusal: str | None = None) -> PlanReport:
    return report_of("/models/Qwen.gguf", options("Qwen", "--gpu", "x,24GiB"), answer(refusal))


def test_what_is_pinned_counts_as_ram_too() -> None:
    assert {pool.name: pool.needed_bytes for pool in report().pools} == {
        "gpu0": 15 * GIB + 2,
        "ram": 8 * GIB,
        "pinned": 8 * GIB,
    }


@pytest.mark.parametrize("width", [80, 117, 140])
def test_the_table_has_every_line_and_stays_within_its_width(width: int) -> None:
    lines = list(sentences(report(), width))
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert lines[0] == "Qwen.gguf on GPU, RTX 4090"
    for words in ("15.01  in their own bits", "0.01  word word", "8.00  left"):
        assert words in text
    said = " ".join(text.split())
    assert "gpu0: 15.01 GiB of 21.00 that may be taken (24.00 in all, other programs 1.00)" in said
    assert said.count("word") == 40
    assert "Fits: context 16,384 tokens, 2 of 4 chats at once, K and V as bf16" in said


def test_what_fits_to_the_last_byte_does_not_look_as_if_it_did_not() -> None:
    full = PoolReport(
        name="ram",
        needed_bytes=3 * GIB + 1,
        free_bytes=3 * GIB + 1,
        total_bytes=0,
        label="",
        holders=(),
    )
    said = " ".join(" ".join(sentences(replace(report(), pools=(full,)), 100)).split())
    assert "ram: 3.00 GiB of 3.00 that may be taken" in said
    more = replace(full, needed_bytes=full.free_bytes + 1)
    said = " ".join(" ".join(sentences(replace(report(), pools=(more,)), 100)).split())
    assert "ram: 3.01 GiB of 3.00 that may be taken" in said


def test_a_refused_plan_says_why() -> None:
    found = report("It needs 30.0 GiB.")
    assert not found.fits
    assert list(sentences(found, 100))[-1] == "Does not fit: It needs 30.0 GiB."
    assert (found.fitting_context_tokens, found.placement) == (2048, None)


def test_a_name_of_the_hub_is_shown_whole() -> None:
    found = report_of("a/b:Q4_K_M", options("a/b:Q4_K_M"), answer())
    assert next(iter(sentences(found, 100))).startswith("a/b:Q4_K_M on ")
    assert Path("a/b:Q4_K_M").name != "a/b:Q4_K_M", "the control"
