"""What is no usable checkpoint gets a sentence of its own, by its content (reports G11 to G15)."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from struct import pack

import gguf
import pytest

from engine.checkpoint.foreign import foreign_kind
from engine.checkpoint.open import model_files, open_checkpoint
from engine.errors import CheckpointError, CheckpointUnreadable, UnsupportedFormat
from tests.helpers.gguf_edit import (
    BOOL,
    STRING,
    Image,
    Line,
    array,
    edit,
    nested,
    read_image,
    string,
    u32,
)
from tests.helpers.listed import checkpoint_facts
from tests.helpers.models import smol_path
from tests.helpers.tiny_gguf import write_script

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 98362432\n"
)
FOREIGN = {
    "empty": (b"", "the file is empty"),
    "big-endian": (b"GGUF" + pack(">IQQ", 3, 272, 33), "other byte order"),
    "ggjt": (b"tjgg" + pack("<I", 3) + bytes(56), "old format of 2023"),
    "ggml": (b"lmgg" + bytes(60), "old format of 2023"),
    "pointer": (POINTER, "the real file of 98362432 bytes was not fetched"),
    "web page": (b"<!DOCTYPE html>\n<html>", "a web page"),
    "pickle": (b"PK\x03\x04" + bytes(60), "PyTorch pickle"),
    "safetensors": (pack("<Q", 100) + b'{"a":{}}', "safetensors file"),
    "zeros": (bytes(64), "its download was not finished"),
    "text": (b"hello world, hello", "no model file"),
    "magic only": (b"GGUF", "cut short"),
}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("script") / "script.gguf"
    write_script(path, ["a reply"])
    return path


def _refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(path)
    return caught.value.sentence


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("ending", ["gguf", "safetensors"])
def test_a_foreign_file_is_called_what_it_is_whatever_its_name(
    tmp_path: Path, name: str, ending: str
) -> None:
    raw, sentence = FOREIGN[name]
    path = tmp_path / f"m.{ending}"
    path.write_bytes(raw)
    assert sentence in _refusal(path)
    assert path.name in _refusal(path)


def test_every_foreign_file_has_a_sentence_of_its_own(tmp_path: Path) -> None:
    sentences = set()
    path = tmp_path / "m.gguf"
    for name in ("empty", "big-endian", "ggjt", "pointer", "web page", "pickle", "safetensors"):
        path.write_bytes(FOREIGN[name][0])
        sentences.add(_refusal(path))
    assert len(sentences) == 7


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_header_as_long_as_a_pickle_begins_is_no_pickle(protocol: int) -> None:
    """0x80 and a protocol's number: a length of 640, 896, 1,152 or 1,408 bytes, as it happens."""
    length = 0x80 + (protocol << 8)
    assert foreign_kind(pack("<Q", length) + b'{"a":{"dtype":"F32"') is None
    pickled = pickle.dumps({"a": bytes(200)}, protocol)
    assert "PyTorch pickle" in (foreign_kind(pickled) or "")


def test_a_gguf_file_opens_under_any_name(tmp_path: Path, script: Path) -> None:
    blob = tmp_path / "blob-1f3a"
    blob.write_bytes(script.read_bytes())
    with open_checkpoint(blob) as source:
        assert source.name == "Script"


def test_a_file_without_weights_is_refused_as_vocabulary(tmp_path: Path, script: Path) -> None:
    path = edit(script, tmp_path / "v.gguf", lambda image: image.tensors.clear())
    assert _refusal(path) == "v.gguf: the file has a vocabulary but no weights"


def test_a_folder_without_weights_and_one_without_anything(tmp_path: Path) -> None:
    assert "holds no model" in _refusal(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert "the weights are missing" in _refusal(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert "model.safetensors: the file is empty" in _refusal(tmp_path)


def test_a_folder_of_two_models_asks_for_one(tmp_path: Path, script: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(script.read_bytes())
    assert len(model_files(tmp_path)) == 2
    assert "holds 2 models; name one of them" in _refusal(tmp_path)


def test_what_is_missing_or_no_file_is_refused_at_once(tmp_path: Path) -> None:
    assert "there is no such file" in _refusal(tmp_path / "nothing.gguf")
    dead = tmp_path / "dead.gguf"
    dead.symlink_to(tmp_path / "gone")
    assert "there is no such file" in _refusal(dead)
    loop = tmp_path / "loop.gguf"
    loop.symlink_to(loop)
    assert "cannot be read" in _refusal(loop) or "no such file" in _refusal(loop)
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    assert "not a regular file" in _refusal(pipe)


def test_a_download_that_stopped_half_way_is_called_that(tmp_path: Path, script: Path) -> None:
    raw = script.read_bytes()
    path = tmp_path / "half.gguf"
    path.write_bytes(raw[: len(raw) // 2])
    assert "it was not downloaded whole or is damaged" in _refusal(path)


@pytest.mark.parametrize("alignment", [8, 16, 64])
def test_every_alignment_gives_the_same_tensors(
    tmp_path: Path, script: Path, alignment: int
) -> None:
    def change(image: Image) -> None:
        image.alignment = alignment
        image.set("general.alignment", u32(alignment))

    path = edit(script, tmp_path / "aligned.gguf", change)
    _assert_same_tensors(script, path)


@pytest.mark.parametrize(
    "value",
    [
        array(BOOL, []),
        nested([array(BOOL, [1, 0]), nested([array(STRING, ["x", ""])])]),
        string(""),
        string("x" * 70_000),
    ],
    ids=["empty bools", "nested", "empty string", "long string"],
)
def test_rare_metadata_in_front_shifts_no_tensor(
    tmp_path: Path, script: Path, value: bytes
) -> None:
    def change(image: Image) -> None:
        image.keys.insert(0, (b"x.rare", value))

    path = edit(script, tmp_path / "rare.gguf", change)
    _assert_same_tensors(script, path)


@pytest.mark.parametrize("alignment", [0, 3])
def test_an_illegal_alignment_is_refused_by_name(
    tmp_path: Path, script: Path, alignment: int
) -> None:
    path = edit(script, tmp_path / "x.gguf", lambda i: i.set("general.alignment", u32(alignment)))
    assert f"general.alignment is {alignment}" in _refusal(path)


def test_a_key_of_length_zero_is_refused(tmp_path: Path, script: Path) -> None:
    path = edit(script, tmp_path / "x.gguf", lambda i: i.keys.append((b"", u32(1))))
    assert "empty name" in _refusal(path)


@pytest.mark.parametrize("type_id", [139, 38, 255])
def test_an_unknown_quant_is_named_and_the_header_is_still_listed(
    tmp_path: Path, script: Path, type_id: int
) -> None:
    name = "blk.0.attn_q.weight"
    path = edit(script, tmp_path / "x.gguf", lambda i: i.change(name, type_id=type_id))
    with pytest.raises(UnsupportedFormat) as caught:
        open_checkpoint(path)
    for part in ("x.gguf", name, f"type {type_id}", "Q4_K"):
        assert part in caught.value.sentence
    listed = checkpoint_facts(path)
    assert (listed.name, listed.architecture, listed.context_tokens) == ("Script", "llama", 4096)
    assert listed.error == caught.value.sentence


@pytest.mark.parametrize("kind", ["TQ1_0", "IQ1_S"])
def test_a_rare_quant_that_is_decoded_opens(tmp_path: Path, script: Path, kind: str) -> None:
    type_id = gguf.GGMLQuantizationType[kind]
    elements, size = gguf.GGML_QUANT_SIZES[type_id]
    rare = Line(b"rare.weight", (elements, 2), int(type_id), bytes(2 * size))
    path = edit(script, tmp_path / "x.gguf", lambda image: image.tensors.append(rare))
    with open_checkpoint(path) as source:
        facts = source.tensors["rare.weight"]
        assert (facts.format, facts.shape, facts.size_bytes) == (
            kind.lower(),
            (2, elements),
            2 * size,
        )


def test_facts_of_the_starter_model() -> None:
    found = checkpoint_facts(smol_path())
    assert found.name == "Smollm2 135M 8k Lc100K Mix1 Ep2"
    assert (found.architecture, found.quantization) == ("llama", "Q4_1")
    assert (found.size_bytes, found.parameter_count) == (98_362_432, 134_515_008)
    assert (found.context_tokens, found.has_template, found.part_count) == (8192, True, 1)
    assert found.error is None


def test_facts_never_raise_for_what_a_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for raw, sentence in FOREIGN.values():
        path.write_bytes(raw)
        found = checkpoint_facts(path)
        assert found.error is not None
        assert sentence in found.error
        assert (found.name, found.size_bytes) == ("m", len(raw))


def test_a_missing_architecture_is_refused_by_its_key(tmp_path: Path, script: Path) -> None:
    path = edit(script, tmp_path / "x.gguf", lambda image: image.remove("general.architecture"))
    with open_checkpoint(path) as source, pytest.raises(CheckpointUnreadable) as caught:
        source.architecture  # noqa: B018 - reading it is the act
    assert "general.architecture is missing" in caught.value.sentence


def test_long_and_unprintable_names_of_a_file_are_shown_short_and_escaped(
    tmp_path: Path, script: Path
) -> None:
    """They go into frames and onto the screen."""

    def change(image: Image) -> None:
        image.set("general.name", string("Evil\u202e \n name " + "x" * 70_000))
        image.set("general.architecture", string("y" * 70_000))
        image.set("\u202ek\n" + "z" * 60_000, string("v"))
        image.keys.append(image.keys[-1])

    path = edit(script, tmp_path / "a\u202eb.gguf", change)
    sentence = _refusal(path)
    assert sentence.startswith("a\\u202eb.gguf: the key '\\u202ek\\nzzz")
    assert sentence.isprintable()
    assert len(sentence) < 200
    path = edit(path, tmp_path / "c.gguf", lambda image: image.keys.pop())
    listed = checkpoint_facts(path)
    assert listed.name.startswith("Evil\\u202e name xxx")
    assert listed.name.isprintable()
    assert len(listed.name) < 140
    assert listed.architecture is not None
    assert len(listed.architecture) == 80


def test_an_image_without_a_change_has_the_same_bytes(tmp_path: Path) -> None:
    """The control for every edited file here."""
    copy = edit(smol_path(), tmp_path / "copy.gguf", lambda _image: None)
    assert copy.read_bytes() == smol_path().read_bytes()


def _assert_same_tensors(first: Path, second: Path) -> None:
    wanted = {line.name.decode(): line.data for line in read_image(first).tensors}
    with open_checkpoint(second) as source:
        assert list(source.tensors) == list(wanted)
        for name, facts in source.tensors.items():
            view = source.tensor_bytes(name)
            assert view == wanted[name][: facts.size_bytes]
            view.release()
