"""The top level is what the design fixed, and no text holds what belongs to one machine."""

from __future__ import annotations

import re
from pathlib import Path

from tests.structure.sources import ROOT, tracked

TOP_LEVEL = {
    "pyproject.toml", "app", "engine", "kernels", "resources", "tests", "installer", "README.md",
    ".ci", ".gitignore", ".gitattributes", ".editorconfig", "LICENSE", "CHANGELOG.md",
    "CONTRIBUTING.md", "SECURITY.md", "THIRD_PARTY_NOTICES.md",
}  # fmt: skip
TEXT = {".py", ".md", ".toml", ".txt", ".c", ".h", ".sh", ".json", ".svg", ".ini", ".cfg", ""}
# Absolute paths of a developer's machine, and hosts other than those a person's Hearth may ask.
PLACES = re.compile(r"(?<![\w.~])/(?:work|root|home/(?!hearth\b)\w+|Users/\w+|opt|mnt)/[\w.-]")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)|!\[[^\]]*\]\(([^)\s]+)\)")
LARGEST_BYTES = 2_000_000


def test_the_top_level_holds_only_what_was_agreed() -> None:
    assert {path.parts[0] for path in tracked()} - TOP_LEVEL == set()


def test_no_text_names_a_path_of_one_machine() -> None:
    found = [
        f"{path}:{number}: {line.strip()[:80]}"
        for path in texts()
        for number, line in enumerate((ROOT / path).read_text("utf-8").splitlines(), 1)
        if PLACES.search(line)
    ]
    assert found == []


def test_the_search_for_paths_finds_one() -> None:
    assert PLACES.search("open('/" + "home/somebody/model.gguf')")
    assert not PLACES.search("see app/home/start.py and ~/.local/share")


def test_every_link_in_a_document_leads_somewhere() -> None:
    broken = [
        f"{path}: {target}"
        for path in tracked()
        if path.suffix == ".md"
        for target in links(path)
        if not (ROOT / path.parent / target).exists()
    ]
    assert broken == []


def test_no_file_is_too_large_for_git() -> None:
    large = [str(path) for path in tracked() if (ROOT / path).stat().st_size > LARGEST_BYTES]
    assert large == []


def test_every_python_package_has_its_marker_file() -> None:
    folders = {p.parent for p in tracked() if p.suffix == ".py" and p.parts[0] != "resources"}
    bare = [str(f) for f in folders if not (ROOT / f / "__init__.py").exists()]
    assert sorted(set(bare) - {"installer/lock"}) == []


def test_each_package_of_the_product_has_a_short_readme() -> None:
    for package in ("app", "engine", "kernels"):
        lines = (ROOT / package / "README.md").read_text("utf-8").splitlines()
        assert 10 < len(lines) < 80, package


def texts() -> list[Path]:
    return [path for path in tracked() if path.suffix in TEXT]


def links(path: Path) -> list[str]:
    """Link targets inside the repository."""
    found = LINK.findall((ROOT / path).read_text("utf-8"))
    targets = [first or second for first, second in found]
    return [target for target in targets if not re.match(r"[a-z]+:", target)]
