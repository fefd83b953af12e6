"""Real venv and pip make the environment from a lock of tiny wheels, and mend accidents."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from installer import environment, locked, stamp
from installer.places import Places
from installer.problems import SetupProblem
from installer.report import Report
from tests.helpers.tiny_wheels import make_wheel

MODULES = ("jinja2", "keyring", "msgspec", "numpy", "platformdirs", "psutil", "tokenizers")


class Checkout:
    """A checkout with a lock, wheels for it, and an `app` that prints its arguments."""

    def __init__(self, folder: Path) -> None:
        self.where = Places(folder / "check out", False)
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.where.lock.mkdir(parents=True)
        app = self.where.root / "app"
        app.mkdir()
        (app / "__init__.py").write_text("")
        (app / "__main__.py").write_text("import sys; print('ours', *sys.argv[1:])")
        tag = locked.this_python()
        torch = make_wheel(self.wheels, "torch", "2.13.0+cpu", {"torch.py": b""})
        self.write("torch-cpu.txt", f"# torch-2-{tag}-{tag}-manylinux_2_28_x86_64.whl\n{torch}")
        self.write("torch-cuda.txt", "")
        self.write("run.txt", "".join(self.package(name, "1.0") for name in MODULES))

    def package(self, name: str, version: str, content: bytes = b"") -> str:
        return make_wheel(self.wheels, name, version, {f"{name}.py": content})

    def write(self, name: str, text: str) -> None:
        (self.where.lock / name).write_text(text)

    def add(self, line: str) -> None:
        path = self.where.lock / "run.txt"
        path.write_text(path.read_text() + line)

    def prepare(self) -> str:
        """Set up; returns what was told."""
        told = io.StringIO()
        environment.prepare(self.where, Report(told), tests=False, backend=None)
        return told.getvalue()

    def installed(self) -> set[str]:
        return {folder.name.split("-")[0] for folder in self.where.packages.glob("*.dist-info")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One checkout whose environment is complete; tests leave it complete."""
    checkout = Checkout(tmp_path_factory.mktemp("setup"))
    with pytest.MonkeyPatch.context() as patch:
        point_pip_at(checkout, patch)
        checkout.prepare()
    return checkout


@pytest.fixture(autouse=True)
def whole_before_and_after(made: Checkout, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Point pip at the wheels; afterwards put the lock back and let set-up mend what is broken."""
    point_pip_at(made, monkeypatch)
    lock = made.where.lock / "run.txt"
    before = lock.read_text()
    yield
    lock.write_text(before)
    point_pip_at(made, monkeypatch)
    made.prepare()


def point_pip_at(checkout: Checkout, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("PIP_CONFIG_FILE", "/dev/null")
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", checkout.wheels.as_uri())


def test_a_complete_environment_is_only_looked_at(made: Checkout) -> None:
    assert made.prepare() == ""


def test_the_command_works_from_any_folder_even_beside_another_app(
    made: Checkout, tmp_path: Path
) -> None:
    other = tmp_path / "app"
    other.mkdir()
    (other / "__main__.py").write_text("print('theirs')")
    told = subprocess.run(
        [made.where.launcher, "ask", "two words"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout == "ours ask two words\n"


def test_an_installation_that_was_cut_off_is_completed(made: Checkout) -> None:
    made.where.stamp.unlink()
    (made.where.packages / "numpy.py").unlink()
    (made.where.packages / "numpy-1.0.dist-info" / "RECORD").unlink()
    made.prepare()
    assert (made.where.packages / "numpy.py").is_file()


def test_an_environment_without_a_working_python_is_made_anew(made: Checkout) -> None:
    made.where.stamp.unlink()
    made.where.python.unlink()
    made.prepare()
    assert set(MODULES) <= made.installed()


def test_a_changed_lock_is_installed_and_what_it_dropped_is_removed(made: Checkout) -> None:
    before = (made.where.lock / "run.txt").read_text()
    made.add(made.package("extra", "1.0"))
    made.prepare()
    assert "extra" in made.installed()
    made.write("run.txt", before)
    made.prepare()
    assert "extra" not in made.installed()
    assert set(MODULES) <= made.installed()


def test_a_file_with_another_hash_stops_and_leaves_no_stamp(made: Checkout) -> None:
    made.add(made.package("extra", "1.0"))
    made.package("extra", "1.0", b"changed on the way")
    with pytest.raises(SetupProblem, match=r"extra==1\.0 is not one that Hearth's lock accepts"):
        made.prepare()
    assert stamp.read(made.where.stamp) is None
    assert "extra" not in made.installed()


def test_a_package_that_does_not_load_is_told_and_the_environment_removed(
    made: Checkout,
) -> None:
    broken = made.package("msgspec", "2.0", b"raise ImportError('no such symbol')")
    whole = [made.package(name, "1.0") for name in MODULES if name != "msgspec"]
    made.write("run.txt", "".join(whole) + broken)
    with pytest.raises(SetupProblem, match="no such symbol"):
        made.prepare()
    assert not made.where.environment.exists()


def test_without_a_network_it_says_so(made: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    made.add(made.package("extra", "1.0"))
    shutil.move(made.wheels / "extra-1.0-py3-none-any.whl", made.where.root)
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "https://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(SetupProblem, match="network could not be used to fetch packages"):
        made.prepare()
