"""A model on the hub is planned by its header alone, as if its files were here."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.remote.listing import listing_of
from engine.checkpoint.remote.names import HubName, hub_name, is_safe
from engine.checkpoint.remote.shadow import KEPT_REVISIONS, gguf_header
from engine.checkpoint.remote.source import open_remote
from engine.checkpoint.remote.transport import Hub
from engine.config import EngineConfig
from engine.errors import CheckpointError, CheckpointUnreadable, HubUnavailable
from engine.loading.loader import CheckpointLoader, Measures
from engine.memory.ledger import Ledger
from engine.memory.pools import RAM, PoolReading
from engine.protocol import Plan
from tests.helpers.fake_hub import REVISION, FakeHub, served
from tests.helpers.gguf_edit import read_image, split
from tests.helpers.models import gemma_path
from tests.helpers.tiny_gguf import write_script
from tests.helpers.tiny_safetensors import llama_tensors, write_folder

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 24,
    "intermediate_size": 36,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 10,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "vocab_size": 53,
    "tie_word_embeddings": True,
}
REPOSITORY = "somebody/Tiny-GGUF"


@pytest.fixture
def script(tmp_path: Path) -> bytes:
    write_script(tmp_path / "script.gguf", ["a reply"])
    return (tmp_path / "script.gguf").read_bytes()


@pytest.fixture
def hub(script: bytes) -> Iterator[FakeHub]:
    files = {"Tiny-Q4_K_M.gguf": script, "README.md": b"# Tiny", "mmproj-F16.gguf": b"GGUF"}
    with served(FakeHub({REPOSITORY: files})) as found:
        yield found


def opened(hub: FakeHub, name: str, folder: Path, total_s: float = 60) -> Any:
    named = hub_name(name)
    assert named is not None
    return open_remote(Hub(hub.endpoint, wait_s=30, total_s=total_s), named, folder / "hub")


def refusal(hub: FakeHub, folder: Path, name: str = REPOSITORY) -> str:
    with pytest.raises(CheckpointError) as refused:
        opened(hub, name, folder)
    return refused.value.sentence


def test_a_header_from_the_hub_reads_as_the_file_does(hub: FakeHub, tmp_path: Path) -> None:
    with opened(hub, REPOSITORY, tmp_path) as remote:
        with open_checkpoint(tmp_path / "script.gguf") as local:
            assert remote.tensors == local.tensors
            assert remote.header_digest == local.header_digest
            assert dict(remote.metadata).keys() == dict(local.metadata).keys()
            assert remote.tokenizer == local.tokenizer
            assert remote.chat_template == local.chat_template
            assert remote.generation_defaults == local.generation_defaults
            assert (remote.name, remote.architecture) == (local.name, local.architecture)
            assert remote.dialect is local.dialect
            name = "output_norm.weight"
            assert bytes(remote.tensor_bytes(name)) == bytes(local.tensor_bytes(name))
        shadow = remote.files[0]
    assert shadow.stat().st_size == (tmp_path / "script.gguf").stat().st_size
    assert shadow.parent.name == f"somebody--Tiny-GGUF--{REVISION}"


def test_what_was_read_before_is_not_read_again(hub: FakeHub, tmp_path: Path) -> None:
    opened(hub, REPOSITORY, tmp_path).close()
    first = len(hub.asked)
    opened(hub, f"{REPOSITORY}:q4_k_m", tmp_path).close()
    assert [path.split("/")[1] for path, _ in hub.asked[first:]] == ["api"]


def test_of_a_large_file_little_more_than_the_header_is_read(tmp_path: Path) -> None:
    with (
        gemma_path().open("rb") as stream,
        served(FakeHub()) as hub,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        hub.repositories = {REPOSITORY: {"gemma.gguf": content}}
        with opened(hub, REPOSITORY, tmp_path) as remote, open_checkpoint(gemma_path()) as local:
            assert remote.header_digest == local.header_digest
            assert remote.tensors == local.tensors
            shadow = remote.files[0].stat()
            with pytest.raises(HubUnavailable, match="not here, only their header"):
                remote.tensor_bytes("token_embd.weight")
    read = sum(
        int(asked.split("-")[1]) + 1 - int(asked.removeprefix("bytes=").split("-")[0])
        for path, asked in hub.asked
        if path.startswith("/cdn/")
    )
    assert read <= 16 << 20
    assert shadow.st_size == gemma_path().stat().st_size
    assert shadow.st_blocks * 512 <= 16 << 20


def test_every_part_of_a_split_file_and_every_shard_is_opened(
    tmp_path: Path, script: bytes
) -> None:
    (tmp_path / "whole.gguf").write_bytes(script)
    parts = split(read_image(tmp_path / "whole.gguf"), tmp_path, "tiny-Q8_0", 3)
    folder = write_folder(tmp_path / "published", CONFIG, llama_tensors(), shards=2)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    repositories = {
        REPOSITORY: {f"Q8_0/{path.name}": path.read_bytes() for path in parts},
        "somebody/Tiny": files | {"extra.gguf": script, "original/x.safetensors": b"1"},
    }
    with served(FakeHub(repositories)) as hub:
        with opened(hub, REPOSITORY, tmp_path) as remote, open_checkpoint(parts[0]) as local:
            assert remote.header_digest == local.header_digest
            assert len(remote.files) == 3
        with opened(hub, "somebody/Tiny", tmp_path) as remote, open_checkpoint(folder) as local:
            assert remote.tensors == local.tensors
            assert remote.architecture == "llama"
        one = f"{REPOSITORY}/Q8_0/{parts[1].name}"
        with opened(hub, one, tmp_path) as remote:
            assert len(remote.files) == 3
        with opened(hub, "somebody/Tiny/extra.gguf", tmp_path) as remote:
            assert remote.name == "Script"


def test_a_plan_of_a_name_is_the_plan_of_the_file(hub: FakeHub, tmp_path: Path) -> None:
    ledger = Ledger({RAM: 0})
    loader = CheckpointLoader(
        EngineConfig(data_directory=tmp_path, threads=1),
        ledger,
        measures=Measures(ram=lambda: PoolReading(RAM, 4 << 30, 4 << 30)),
        hub=hub.endpoint,
    )
    remote = loader.plan(Plan(request=1, path=f"{REPOSITORY}:Q4_K_M"))
    local = loader.plan(Plan(request=1, path=str(tmp_path / "script.gguf")))
    assert remote == local
    assert remote.refusal is None
    with pytest.raises(CheckpointUnreadable):
        loader.plan(Plan(request=1, path="no name/of a repository/at all"))
    ledger.close()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "private or asks for an agreement"),
        (403, "ask for an agreement"),
        (404, "no somebody/Tiny-GGUF on the hub"),
        (429, "patience"),
        (503, "503"),
    ],
)
def test_each_refusal_of_the_hub_is_one_sentence(
    hub: FakeHub, tmp_path: Path, status: int, words: str
) -> None:
    hub.status = status
    said = refusal(hub, tmp_path)
    assert words in said
    assert said.endswith(".")


def test_an_unknown_repository_is_told(hub: FakeHub, tmp_path: Path) -> None:
    assert "There is no somebody/None on the hub" in refusal(hub, tmp_path, "somebody/None")


def test_without_a_network_one_sentence_says_so(tmp_path: Path) -> None:
    nobody = FakeHub(endpoint="http://127.0.0.1:9")
    assert "127.0.0.1:9 cannot be reached" in refusal(nobody, tmp_path)


def test_a_transfer_that_was_cut_goes_on_where_it_ended(hub: FakeHub, tmp_path: Path) -> None:
    hub.cut_after, hub.cuts = 1000, 2
    with (
        opened(hub, REPOSITORY, tmp_path) as remote,
        open_checkpoint(tmp_path / "script.gguf") as local,
    ):
        assert remote.header_digest == local.header_digest
    ranges = [asked for path, asked in hub.asked if path.startswith("/cdn/")]
    assert [asked.split("-")[0] for asked in ranges] == ["bytes=0", "bytes=1000", "bytes=2000"]


def test_a_transfer_that_is_always_cut_publishes_nothing(hub: FakeHub, tmp_path: Path) -> None:
    hub.cut_after, hub.cuts = 1000, 99
    assert "cut off 3 times" in refusal(hub, tmp_path)
    assert [path for path in tmp_path.rglob("*.gguf") if "hub" in path.parts] == []


def test_other_bytes_than_were_asked_for_are_refused(hub: FakeHub, tmp_path: Path) -> None:
    hub.ignores_range = True
    assert "only as a whole" in refusal(hub, tmp_path)
    hub.ignores_range, hub.shifts_range = False, True
    assert "another part" in refusal(hub, tmp_path)
    hub.shifts_range, hub.says_total = False, 12_345
    assert "12,345 bytes, but the hub lists it with" in refusal(hub, tmp_path)
    hub.says_total, hub.redirect = None, "ftp://elsewhere/x"
    assert "not safe" in refusal(hub, tmp_path)


def test_a_hub_that_drips_or_gives_too_much_is_left(hub: FakeHub, tmp_path: Path) -> None:
    hub.delay_s = 0.02
    with pytest.raises(HubUnavailable, match="takes too long"):
        opened(hub, REPOSITORY, tmp_path, total_s=0.1)
    hub.delay_s, hub.extra = 0, b"x" * 100
    assert "more of Tiny-Q4_K_M.gguf than it was asked for" in refusal(hub, tmp_path)


def test_an_answer_about_a_repository_that_was_cut_is_told(hub: FakeHub, tmp_path: Path) -> None:
    hub.cuts = 1
    assert "was cut off" in refusal(hub, tmp_path)


def test_what_cannot_be_kept_is_told(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "hub").write_bytes(b"a file in the way")
    assert "cannot be kept" in refusal(hub, tmp_path)


def test_what_is_no_checkpoint_says_what_it_is(hub: FakeHub, tmp_path: Path) -> None:
    hub.repositories[REPOSITORY] = {"page.gguf": b"<!doctype html>" * 100}
    assert "not a GGUF file" in refusal(hub, tmp_path)
    hub.repositories[REPOSITORY] = {"empty.gguf": b""}
    assert "empty" in refusal(hub, tmp_path)
    huge = (1 << 40).to_bytes(8, "little") + b"{" * 100
    hub.repositories[REPOSITORY] = {
        "config.json": json.dumps(CONFIG).encode(),
        "model.safetensors": huge,
    }
    assert "the header says" in refusal(hub, tmp_path)


def test_an_answer_that_makes_no_sense_is_refused(hub: FakeHub, tmp_path: Path) -> None:
    for answer in (b"[]", b"{", b'{"sha": "x", "siblings": []}', b'{"sha": 1}', b"[" * 100_000):
        hub.answer = answer
        assert "makes no sense" in refusal(hub, tmp_path) or "understood" in refusal(hub, tmp_path)


def test_hostile_names_of_a_listing_are_not_seen() -> None:
    names = ["../x.gguf", "/etc/x.gguf", "a/../b.gguf", "a\\b.gguf", "x\0.gguf", ".hidden.gguf",
             "a//b.gguf", "a/b/c/d/e.gguf", "é.gguf", "x.gguf ", 7, None]  # fmt: skip
    entries = [{"rfilename": name, "size": 5} for name in names]
    entries += [{"rfilename": "ok.gguf", "size": size} for size in (-1, "5", None, True, 1 << 60)]
    assert not any(is_safe(name) for name in names if isinstance(name, str))
    found = listing_of({"sha": REVISION, "siblings": [*entries, 5]}, "a/b")
    assert found.files == {}


@given(st.text(st.sampled_from("ab./\\:-_ +()\0\n~é") | st.characters(), max_size=24))
def test_a_name_that_is_taken_leads_nowhere_else(name: str) -> None:
    folder = Path("/shadow")
    if is_safe(name):
        place = folder.joinpath(*name.split("/"))
        assert Path(os.path.normpath(place)) == place
        assert folder in place.parents
        assert hub_name(f"a/b/{name}.gguf") is None or is_safe(f"{name}.gguf")


def test_a_hub_that_leads_in_circles_is_left(hub: FakeHub, tmp_path: Path) -> None:
    hub.redirect = f"{hub.endpoint}/somebody/Tiny-GGUF/resolve/{REVISION}/Tiny-Q4_K_M.gguf"
    assert "302" in refusal(hub, tmp_path)


def test_a_repository_of_several_models_wants_one_to_be_named(
    hub: FakeHub, tmp_path: Path, script: bytes
) -> None:
    names = ("T-Q4_K_S.gguf", "T-Q8_0.gguf", "T-UD-Q8_0.gguf", "imatrix.gguf")
    hub.repositories[REPOSITORY] = dict.fromkeys(names, script)
    said = refusal(hub, tmp_path)
    assert "It has T-Q4_K_S, T-Q8_0, T-UD-Q8_0." in said
    assert "no GGUF file of Q4_K" in refusal(hub, tmp_path, f"{REPOSITORY}:Q4_K")
    with opened(hub, f"{REPOSITORY}:Q8_0", tmp_path) as remote:
        assert remote.files[0].name == "T-Q8_0.gguf"
    assert "no file T-Q9.gguf" in refusal(hub, tmp_path, f"{REPOSITORY}/T-Q9.gguf")
    hub.repositories[REPOSITORY]["T-Q4_K_M.gguf"] = script
    with opened(hub, REPOSITORY, tmp_path) as remote:
        assert remote.files[0].name == "T-Q4_K_M.gguf"
    hub.repositories[REPOSITORY] = {"README.md": b"x"}
    assert "no model that Hearth can read" in refusal(hub, tmp_path)


def test_only_the_newest_shadows_are_kept(hub: FakeHub, tmp_path: Path) -> None:
    for number in range(KEPT_REVISIONS + 3):
        (tmp_path / "hub" / f"old-{number}").mkdir(parents=True)
    opened(hub, REPOSITORY, tmp_path).close()
    assert len(list((tmp_path / "hub").iterdir())) == KEPT_REVISIONS


def test_a_header_that_goes_on_for_ever_is_given_up() -> None:
    """It claims ever more keys than there are bytes; the limit of a header ends it."""
    endless = b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + (60_000).to_bytes(8, "little")
    asked: list[int] = []

    def read(start: int, size: int) -> bytes:
        asked.append(size)
        return (b"" if start else endless) + b"k" * (size if start else size - len(endless))

    with pytest.raises(CheckpointUnreadable):
        gguf_header(read, 1 << 40, "x")
    assert sum(asked) <= (32 << 20) + 1


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a/b", HubName("a/b")),
        ("a/b:Q4_K_M", HubName("a/b", "Q4_K_M")),
        ("a/b.c-d/sub/x.gguf", HubName("a/b.c-d", None, "sub/x.gguf")),
        ("a/x.gguf", None),
        ("a", None),
        ("./a/b", None),
        ("a/../b", None),
        ("a/b/c", None),
        ("/a/b", None),
        ("a/b/../../x.gguf", None),
        ("a\\b", None),
        ("a/b:", None),
        ("", None),
    ],
)
def test_names_of_the_hub_are_told_from_paths(text: str, wanted: HubName | None) -> None:
    assert hub_name(text) == wanted
    if wanted is not None:
        assert str(wanted) == text
