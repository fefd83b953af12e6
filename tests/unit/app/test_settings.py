"""The settings file: what was set is there again, what was not understood is kept."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.directories import directories, make_private
from app.errors import DirectoryUnusable, SettingsInvalid
from app.link.events import LoadWish
from app.settings.file import SettingsFile
from app.settings.record import Settings, WindowSettings
from app.settings.sampling import Preset, SamplingSettings
from app.settings.toml import to_toml

CHANGED = Settings(
    default_model='C:\\models\\"x".gguf',
    model_folders=("/a b", "/ü\x7f\n"),
    theme="dark",
    text_scale=1.25,
    states_quota_gb=0.5,
    allow_8bit_kv=True,
    sampling=SamplingSettings(temperature=0.7, top_k=40, seed=2**40),
    accent="#336699",
    presets=(Preset(name="kürz", system="Be brief.", sampling=SamplingSettings(top_p=0.5)),),
    window=WindowSettings(x=-5, y=0, width=1200, height=800, maximized=True),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "settings.toml"


def test_settings_are_the_same_after_reading_again(file: Path) -> None:
    assert SettingsFile(file).settings == Settings()
    SettingsFile(file).save(CHANGED)
    again = SettingsFile(file)
    assert again.settings == CHANGED
    assert again.notices == ()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_defaults_are_not_written(file: Path) -> None:
    SettingsFile(file).save(Settings())
    assert file.read_text().strip() == ""


def test_the_engine_is_started_and_models_are_loaded_as_it_was_set() -> None:
    usual = Settings()
    assert usual.engine_arguments() == ()
    assert usual.to_wish() == LoadWish()
    assert CHANGED.engine_arguments() == ("--state-quota-bytes", "500000000")
    assert CHANGED.to_wish() == LoadWish(kv="full-or-fp8")
    assert Settings(states_quota_gb=0.0).engine_arguments() == ("--state-quota-bytes", "0")


def test_unknown_names_are_told_and_kept(file: Path) -> None:
    file.parent.mkdir()
    file.write_text(
        'colour = "red"\n[sampling]\ntemprature = 1\ntop_k = 3\n[later]\nday = 2030-01-02\n'
    )
    found = SettingsFile(file)
    assert found.settings.sampling.top_k == 3
    assert "colour, sampling.temprature, later.day" in found.notices[0]
    found.save(CHANGED)
    kept = tomllib.loads(file.read_text())
    assert kept["colour"] == "red"
    assert kept["sampling"]["temprature"] == 1
    assert kept["sampling"]["top_k"] == 40
    assert kept["later"]["day"].year == 2030
    assert SettingsFile(file).settings == CHANGED


@pytest.mark.parametrize(
    "text",
    [
        "not toml at all",
        "text_scale = 'big'",
        "[sampling]\ntemperature = nan",
        "[sampling]\ntemperature = -1",
        "sampling = 3",
        "theme = 'purple'",
    ],
)
def test_a_file_that_is_no_settings_is_told_and_not_lost(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    found = SettingsFile(file)
    assert found.settings == Settings()
    assert len(found.notices) == 1
    assert str(file) in found.notices[0]
    assert file.read_text() == text
    found.save(CHANGED)
    assert file.with_name("settings.toml.unreadable").read_text() == text
    assert SettingsFile(file).settings == CHANGED


def test_bytes_that_are_not_utf8_are_told(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"\xff\xfe")
    assert "not used" in SettingsFile(file).notices[0]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises((SettingsInvalid, DirectoryUnusable)):
        SettingsFile(tmp_path / "file" / "settings.toml").save(CHANGED)
    with pytest.raises(DirectoryUnusable, match="cannot be made"):
        make_private(tmp_path / "file" / "data")


def test_everything_of_a_given_profile_lies_beneath_it(tmp_path: Path) -> None:
    places = directories(tmp_path / "profile")
    found = [
        places.settings_file, places.models, places.store_file, places.blobs,
        places.lock_file, places.crash_file, places.checkpoints_file, places.engine_log,
    ]  # fmt: skip
    assert all(path.is_relative_to(tmp_path / "profile") for path in found)
    assert not (tmp_path / "profile").exists()
    assert directories().data.is_absolute()


PLAIN = st.one_of(
    st.booleans(), st.integers(-(2**62), 2**62), st.floats(allow_nan=False), st.text(max_size=20)
)
TABLES = st.recursive(
    st.dictionaries(st.text(max_size=8), st.one_of(PLAIN, st.lists(PLAIN, max_size=3)), max_size=4),
    lambda inner: st.dictionaries(st.text(max_size=8), st.one_of(PLAIN, inner), max_size=3),
    max_leaves=6,
)


@given(TABLES)
@settings(max_examples=50)
def test_any_table_is_the_same_as_toml_and_back(table: dict[str, object]) -> None:
    """Python's own reader is the reference; a table without a value is not written."""
    assert tomllib.loads(to_toml(table)) == _without_empty(table)


def _without_empty(table: dict[str, object]) -> dict[str, object]:
    found = {k: _without_empty(v) if isinstance(v, dict) else v for k, v in table.items()}
    return {k: v for k, v in found.items() if v != {}}
