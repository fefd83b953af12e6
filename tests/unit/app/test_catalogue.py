"""Which checkpoints are found in folders, and which one a name means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.errors import ModelUnknown
from app.library.catalogue import STARTER, Catalogue, Installed
from app.library.folders import is_published, look


def catalogue(*names: str, away: tuple[str, ...] = ()) -> Catalogue:
    return Catalogue(
        tuple(Installed(Path("/m") / f"{n}.gguf", 1, present=n not in away) for n in names)
    )


SOME = catalogue("SmolLM2-135M-Instruct.Q4_1", "gemma-3-270m", "gemma-3-1b")


@pytest.mark.parametrize(
    "name", ["gemma-3-270m", "GEMMA-3-270M", "gemma-3-270m.gguf", "270m", "Gemma-3-270M.GGUF"]
)
def test_a_name_finds_its_checkpoint(name: str) -> None:
    assert SOME.find(name).name == "gemma-3-270m"


def test_an_exact_name_wins_over_a_part_of_another() -> None:
    assert catalogue("gemma", "gemma-3").find("gemma").name == "gemma"


def test_a_name_of_several_is_refused_with_their_names() -> None:
    with pytest.raises(ModelUnknown, match="several models: gemma-3-270m, gemma-3-1b") as caught:
        SOME.find("gemma")
    assert caught.value.exit_code == 2


def test_an_unknown_name_is_refused_with_near_ones() -> None:
    with pytest.raises(ModelUnknown, match=r"near: .*gemma-3-270m"):
        SOME.find("gema-3-270")
    with pytest.raises(ModelUnknown, match="installed: SmolLM2"):
        SOME.find("zzz")
    with pytest.raises(ModelUnknown, match="No model is installed"):
        catalogue().find("x")
    with pytest.raises(ModelUnknown):
        SOME.find("")


def test_twins_are_told_apart_by_their_folders() -> None:
    twins = Catalogue((Installed(Path("/a/m.gguf"), 1), Installed(Path("/b/m.gguf"), 1)))
    with pytest.raises(ModelUnknown, match=r"/a/m\.gguf, /b/m\.gguf"):
        twins.find("m")


def test_one_that_is_away_is_named_as_such() -> None:
    with pytest.raises(ModelUnknown, match="is not there now"):
        catalogue("a", away=("a",)).find("a")


def test_the_usual_one_is_the_chosen_then_the_starter_then_the_first() -> None:
    starter = STARTER.file_name.removesuffix(".gguf")
    assert catalogue("a", starter).default().name == starter
    assert catalogue("a", "b", away=("a",)).default().name == "b"
    assert catalogue("a", starter).default("a").name == "a"
    assert catalogue("a", starter).default("/m/a.gguf").name == "a"
    with pytest.raises(ModelUnknown, match="No model is installed"):
        catalogue("a", away=("a",)).default()


# Folders -----------------------------------------------------------------------------------------


def names(found: Catalogue) -> list[tuple[str, bool]]:
    return [(entry.name, entry.present) for entry in found.installed]


def test_models_are_found_in_subfolders_and_splits_count_once(tmp_path: Path) -> None:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "b.gguf").write_bytes(b"12")
    (tmp_path / "sub" / "A.GGUF").write_bytes(b"123")
    (tmp_path / "sub" / "deep" / "c-00001-of-00002.gguf").write_bytes(b"1")
    (tmp_path / "sub" / "deep" / "c-00002-of-00002.gguf").write_bytes(b"22")
    (tmp_path / "mmproj-b.gguf").write_bytes(b"1")
    (tmp_path / "notes.txt").write_bytes(b"1")
    (tmp_path / "folder.gguf").mkdir()
    found = look([tmp_path])
    sizes = {entry.path.name: entry.file_bytes for entry in found.catalogue.installed}
    assert sizes == {"A.GGUF": 3, "b.gguf": 2, "c-00001-of-00002.gguf": 3}
    assert found.problems == ()


def test_a_published_folder_is_one_model_and_its_size_that_of_its_weights(tmp_path: Path) -> None:
    folder = tmp_path / "Qwen" / "Qwen3-0.6B"
    folder.mkdir(parents=True)
    for name, content in {
        "config.json": b"{}",
        "a.safetensors": b"12",
        "b.safetensors": b"3",
    }.items():
        (folder / name).write_bytes(content)
    (tmp_path / "config.json").write_bytes(b"{}")
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "a.safetensors").write_bytes(b"1")
    found = look([tmp_path])
    assert [(one.path, one.file_bytes) for one in found.catalogue.installed] == [(folder, 3)]
    assert found.catalogue.find("qwen3-0.6b").path == folder
    assert is_published(folder)
    assert not is_published(tmp_path) and not is_published(tmp_path / "alone")


def test_a_folder_of_the_hub_s_cache_is_called_by_its_repository(tmp_path: Path) -> None:
    folder = tmp_path / "models--Qwen--Qwen3-0.6B" / "snapshots" / "0123abcd"
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes(b"{}")
    (entry,) = look([tmp_path]).catalogue.installed
    assert (entry.name, entry.path) == ("Qwen3-0.6B", folder)


def test_bad_entries_hide_no_others(tmp_path: Path) -> None:
    (tmp_path / "good.gguf").write_bytes(b"1")
    (tmp_path / "dead.gguf").symlink_to(tmp_path / "nowhere")
    (tmp_path / "self.gguf").symlink_to(tmp_path / "self.gguf")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "half-00001-of-00002.gguf").write_bytes(b"1")
    found = look([tmp_path])
    assert names(found.catalogue) == [("good", True)]
    assert len(found.problems) == 3
    for name in ("dead", "self", "half"):
        assert any(name in problem for problem in found.problems)


def test_an_unreadable_folder_hides_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "good.gguf").write_bytes(b"1")
    (tmp_path / "closed").mkdir()
    scan = os.scandir

    def refuse(path: Path) -> object:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr("os.scandir", refuse)
    found = look([tmp_path])
    assert names(found.catalogue) == [("good", True)]
    assert "Permission denied" in found.problems[0]


def test_a_folder_that_is_away_keeps_its_models_in_the_list(tmp_path: Path) -> None:
    own, drive, memory = tmp_path / "models", tmp_path / "drive", tmp_path / "seen.json"
    for folder, name in ((own, "a"), (drive, "b")):
        folder.mkdir()
        (folder / f"{name}.gguf").write_bytes(b"1")
    assert names(look([own, drive], memory).catalogue) == [("a", True), ("b", True)]
    drive.rename(tmp_path / "unplugged")
    away = look([own, drive], memory)
    assert names(away.catalogue) == [("a", True), ("b", False)]
    assert "is not there now" in away.problems[0]
    assert names(look([own, drive], memory).catalogue) == [("a", True), ("b", False)]
    (tmp_path / "unplugged").rename(drive)
    assert names(look([own, drive], memory).catalogue) == [("a", True), ("b", True)]
    (drive / "b.gguf").unlink()
    assert names(look([own, drive], memory).catalogue) == [("a", True)]


def test_the_own_folder_may_not_exist_yet(tmp_path: Path) -> None:
    found = look([tmp_path / "models"], tmp_path / "no" / "seen.json")
    assert found.catalogue.installed == ()
    assert found.problems == ()
