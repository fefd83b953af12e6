"""Every package of the lock and every model that is fetched stands in the notices."""

from __future__ import annotations

import re
import tomllib

from installer import locked
from tests.structure.sources import ROOT

LOCK = ROOT / "installer" / "lock"
NOTICES = (ROOT / "THIRD_PARTY_NOTICES.md").read_text("utf-8")
ROW = re.compile(r"^\| ([a-z0-9-]+) \| (\S+) \| (.+) \|$", re.MULTILINE)


def listed() -> dict[str, tuple[str, str]]:
    """Package -> version and licence, as the notices say."""
    return {name: (version, licence) for name, version, licence in ROW.findall(NOTICES)}


def test_every_locked_package_is_listed_with_its_version() -> None:
    notices = listed()
    for name in ("run.txt", "torch-cpu.txt", "torch-cuda.txt", "test.txt"):
        for package, version in locked.requirements((LOCK / name).read_text("utf-8")).items():
            assert notices[package][0].split("+")[0] == version.split("+")[0], package


def test_every_licence_is_stated_and_none_binds_hearth_itself() -> None:
    licences = {name: licence for name, (_, licence) in listed().items()}
    assert all(licences.values())
    # Strong copyleft without a lesser choice would reach the program that imports the package.
    bound = [
        name
        for name, licence in licences.items()
        if re.search(r"\bA?GPL", licence.replace("LGPL", "")) and "LGPL" not in licence
    ]
    assert bound == []


def test_every_package_that_carries_a_model_or_a_tool_is_listed() -> None:
    wanted = tomllib.loads((LOCK / "wanted.toml").read_text("utf-8"))
    for pin in (*wanted["starter"], wanted["test-models"][0], *wanted["test-converter"]):
        name, version = pin.split("==")
        assert name in NOTICES
        assert version in NOTICES
