"""Whose states are whose: every fact changes the identity, and nothing else does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.cache.formats import KvFormat
from engine.config import Compute, EngineConfig, parse_arguments
from engine.models import model_spec
from engine.states.border import ModelIdentity
from engine.states.disk.library import identity_name
from engine.states.identity import (
    SAMPLE_BYTES,
    StateLayout,
    computing_sources,
    identity_of,
    sampled_digest,
    sources_digest,
)
from engine.states.records import SLOT
from tests.helpers.memory_source import GEMMA3, LLAMA, MemorySource, random_arrays

LAYOUT = StateLayout(KvFormat.FP16, 256, 256, {0: 1234, SLOT: 77})
CONFIG = EngineConfig(Path("unused"), threads=3)


def source(folder: Path, architecture: str = "llama", content: bytes = b"x" * 500) -> MemorySource:
    keys = LLAMA if architecture == "llama" else GEMMA3
    made = MemorySource(architecture, keys, random_arrays(architecture, keys))
    path = folder / "tiny.gguf"
    path.write_bytes(content)
    made.files = (path,)
    return made


def identity(
    made: MemorySource, layout: StateLayout = LAYOUT, config: EngineConfig = CONFIG
) -> ModelIdentity:
    return identity_of(made, model_spec(made), layout, config)


def test_the_same_facts_are_the_same_identity(tmp_path: Path) -> None:
    first = identity(source(tmp_path))
    assert first == identity(source(tmp_path))
    assert first.model == "tiny" and first.extent_bytes == {0: 1234, SLOT: 77} and first.can_cut
    assert not identity(source(tmp_path, "gemma3")).can_cut
    assert dict(first.facts)["kv"] == "fp16" and dict(first.facts)["threads"] == "3"
    assert all(which for _, which in first.facts)


Change = Callable[[MemorySource], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda made: setattr(made, "header_digest", "1" * 64),
        lambda made: setattr(made, "chat_template", "{{ messages }}"),
        lambda made: made.files[0].write_bytes(b"x" * 499 + b"y"),
        lambda made: made.files[0].write_bytes(b"x" * 501),
        lambda made: made.metadata.update({"llama.rope.freq_base": 10001.0}),
    ],
    ids=["header", "template", "weights", "size", "model"],
)
def test_every_fact_of_a_checkpoint_counts(tmp_path: Path, change: Change) -> None:
    made = source(tmp_path)
    before = identity_name(identity(made))
    change(made)
    assert identity_name(identity(made)) != before


def test_how_it_is_computed_and_laid_out_counts(tmp_path: Path) -> None:
    made = source(tmp_path)
    found = {
        identity_name(identity(made)),
        identity_name(identity(made, replace(LAYOUT, kv_format=KvFormat.FP8))),
        identity_name(identity(made, replace(LAYOUT, grid_rows=64))),
        identity_name(identity(made, replace(LAYOUT, chunk_rows=512))),
        identity_name(identity(made, replace(LAYOUT, extent_bytes={0: 1235, SLOT: 77}))),
        identity_name(identity(made, config=replace(CONFIG, threads=2))),
        identity_name(identity(made, config=replace(CONFIG, compute=Compute.FLOAT32))),
    }
    assert len(found) == 7


def test_samples_cover_the_ends_and_the_middle_of_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "large"
    size = 80 * SAMPLE_BYTES + 12_345
    content = bytearray(size)
    path.write_bytes(content)
    plain = sampled_digest([path])
    for place in (0, SAMPLE_BYTES - 1, size - SAMPLE_BYTES, size - 1, size // 65 * 30):
        content[place] ^= 1
        path.write_bytes(content)
        assert sampled_digest([path]) != plain, place
        content[place] ^= 1
    content[SAMPLE_BYTES + 5] ^= 1
    path.write_bytes(content)
    assert sampled_digest([path]) == plain, "the control: what lies between samples is not read"


def test_a_small_or_an_empty_file_is_sampled_whole(tmp_path: Path) -> None:
    path = tmp_path / "small"
    seen = set()
    for content in (b"", b"\0", b"\0" * SAMPLE_BYTES, b"\0" * (66 * SAMPLE_BYTES)):
        path.write_bytes(content)
        seen.add(sampled_digest([path]))
    path.write_bytes(b"\0" * (33 * SAMPLE_BYTES + 7) + b"\1" + b"\0" * (33 * SAMPLE_BYTES - 8))
    seen.add(sampled_digest([path]))
    assert len(seen) == 5


def test_what_computes_is_named_and_hashed_by_content_without_line_ends(tmp_path: Path) -> None:
    names = [name for name, _ in computing_sources()]
    for part in ("kernels/cpu/library.py", "engine/native/runner.py", "engine/forward/model.py"):
        assert part in names
    assert any(name.endswith(".so") for name in names)
    assert not any(name.startswith(("engine/states", "engine/serving")) for name in names)
    assert "engine/backend.py" in names
    text, library = tmp_path / "a.py", tmp_path / "a.so"
    text.write_bytes(b"x = 1\n")
    library.write_bytes(b"1\n")
    plain = sources_digest([("a.py", text), ("a.so", library)])
    text.write_bytes(b"x = 1\r\n")
    assert sources_digest([("a.py", text), ("a.so", library)]) == plain
    library.write_bytes(b"1\r\n")
    changed = sources_digest([("a.py", text), ("a.so", library)])
    assert changed not in (plain, sources_digest([("b.py", text), ("a.so", library)]))


def test_an_identity_needs_no_torch() -> None:
    program = (
        "import sys, engine.states.identity, engine.states.disk.library; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_quota_is_an_argument_of_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--data-directory", "somewhere"]
    assert parse_arguments(folder).state_quota_bytes is None
    assert parse_arguments([*folder, "--state-quota-bytes", "0"]).state_quota_bytes == 0
    assert parse_arguments([*folder, "--state-quota-bytes", "5000"]).state_quota_bytes == 5000
    for wrong in ("-1", "1.5", "much"):
        with pytest.raises(SystemExit):
            parse_arguments([*folder, "--state-quota-bytes", wrong])
    assert "negative" in capsys.readouterr().err
