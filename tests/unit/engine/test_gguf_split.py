"""Split checkpoints: any part opens the set, and a broken set says what to do (report G12)."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.checkpoint.open import model_files, open_checkpoint
from engine.errors import CheckpointUnreadable
from tests.helpers.gguf_edit import I32, U16, Image, Line, read_image, scalar, split, string
from tests.helpers.tiny_gguf import write_script


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("script") / "script.gguf"
    write_script(path, ["a reply"])
    return path


@pytest.fixture
def whole(script: Path) -> Image:
    return read_image(script)


@pytest.fixture
def parts(tmp_path: Path, whole: Image) -> list[Path]:
    return split(whole, tmp_path, "tiny", 3)


def _refusal(path: Path) -> str:
    with pytest.raises(CheckpointUnreadable) as caught:
        open_checkpoint(path)
    return caught.value.sentence


@pytest.mark.parametrize("number", [0, 1, 2])
def test_any_part_opens_the_whole_set(parts: list[Path], whole: Image, number: int) -> None:
    with open_checkpoint(parts[number]) as source:
        assert source.files == tuple(parts)
        assert source.name == "Script"
        assert list(source.tensors) == [line.name.decode() for line in whole.tensors]
        for line in whole.tensors:
            facts = source.tensors[line.name.decode()]
            view = source.tensor_bytes(facts.name)
            assert view == line.data[: facts.size_bytes]
            view.release()


def test_the_digest_is_of_all_parts(parts: list[Path]) -> None:
    with open_checkpoint(parts[0]) as source:
        before = source.header_digest
    with open_checkpoint(parts[2]) as source:
        assert source.header_digest == before
    image = read_image(parts[2])
    image.set("x", string("changed"))
    image.write(parts[2])
    with open_checkpoint(parts[0]) as source:
        assert source.header_digest != before


def test_a_folder_lists_a_split_checkpoint_once_and_opens_it(
    parts: list[Path], tmp_path: Path
) -> None:
    assert model_files(tmp_path) == (parts[0],)
    with open_checkpoint(tmp_path) as source:
        assert len(source.files) == 3


def test_a_first_part_without_tensors_opens(tmp_path: Path, whole: Image) -> None:
    paths = split(whole, tmp_path, "tiny", 2)
    first, second = read_image(paths[0]), read_image(paths[1])
    second.tensors = first.tensors + second.tensors
    first.tensors = []
    first.write(paths[0])
    second.write(paths[1])
    with open_checkpoint(paths[0]) as source:
        assert len(source.tensors) == len(whole.tensors)


def test_a_missing_part_is_named(parts: list[Path]) -> None:
    parts[2].unlink()
    for path in parts[:2]:
        sentence = _refusal(path)
        assert "tiny-00003-of-00003.gguf" in sentence
        assert "part 3 of 3 is missing; put it beside the others" in sentence


def test_a_renamed_part_is_told_its_name(parts: list[Path]) -> None:
    renamed = parts[2].rename(parts[2].with_name("other.gguf"))
    sentence = _refusal(renamed)
    assert "part 3 of 3" in sentence
    assert "-00003-of-00003.gguf; give every part its own name back" in sentence


def test_two_parts_with_swapped_names_are_refused(parts: list[Path]) -> None:
    first, last = parts[1].read_bytes(), parts[2].read_bytes()
    parts[1].write_bytes(last)
    parts[2].write_bytes(first)
    assert "its name says part 2 of 3, but the file says part 3 of 3" in _refusal(parts[0])


def test_parts_joined_byte_after_byte_are_refused_with_what_to_do(
    parts: list[Path], tmp_path: Path
) -> None:
    joined = tmp_path / "joined.gguf"
    joined.write_bytes(b"".join(path.read_bytes() for path in parts))
    sentence = _refusal(joined)
    assert f"another GGUF file begins at byte {parts[0].stat().st_size}" in sentence
    assert "keep the parts as separate files" in sentence


def test_a_merged_file_that_still_says_split_is_whole(tmp_path: Path, whole: Image) -> None:
    """With and without the count of tensors; by the blocks where it is absent."""
    whole.set("split.no", scalar(U16, 0))
    whole.set("split.count", scalar(U16, 3))
    for total in (None, len(whole.tensors)):
        if total is not None:
            whole.set("split.tensors.count", scalar(I32, total))
        with open_checkpoint(whole.write(tmp_path / "merged.gguf")) as source:
            assert len(source.tensors) == len(whole.tensors)


def test_a_part_that_repeats_a_tensor_is_refused(parts: list[Path]) -> None:
    first, last = read_image(parts[0]), read_image(parts[2])
    last.tensors[-1] = first.tensors[0]
    last.write(parts[2])
    assert "repeats the tensor" in _refusal(parts[0])


def test_a_set_with_fewer_tensors_than_promised_is_refused(parts: list[Path]) -> None:
    last = read_image(parts[2])
    last.tensors.pop()
    last.write(parts[2])
    assert "promises 12 tensors, but its 3 parts hold 11" in _refusal(parts[0])


@pytest.mark.parametrize(("number", "count"), [(3, 3), (9, 2), (0, 65_535)])
def test_an_impossible_part_number_is_refused(
    tmp_path: Path, whole: Image, number: int, count: int
) -> None:
    whole.set("split.no", scalar(U16, number))
    whole.set("split.count", scalar(U16, count))
    whole.set("split.tensors.count", scalar(I32, 99))
    assert "which cannot be" in _refusal(whole.write(tmp_path / "x.gguf"))


def test_a_damaged_sister_is_refused_by_its_own_name(parts: list[Path]) -> None:
    raw = parts[1].read_bytes()
    parts[1].write_bytes(raw[: len(raw) - 64])
    assert _refusal(parts[0]).startswith("tiny-00002-of-00003.gguf: ")
    parts[1].write_bytes(b"")
    assert _refusal(parts[0]) == "tiny-00002-of-00003.gguf: the file is empty"


def test_tensors_of_one_part_may_start_where_those_of_another_do(
    tmp_path: Path,
) -> None:
    """The control for overlap: offsets count within a file."""
    image = Image()
    image.set("general.architecture", string("llama"))
    image.tensors = [Line(name, (8,), 0, bytes(32)) for name in (b"a", b"b")]
    paths = split(image, tmp_path, "x", 2)
    with open_checkpoint(paths[0]) as source:
        first, second = source.tensors.values()
        assert (first.file, second.file) == (0, 1)
