"""Makes the lock: every package of each set, its version and the accepted hashes of its wheels.

Run by hand when `wanted.toml` changes, with `uv` on the path (`pip install uv`)::

    python3 installer/lock/make_lock.py

It asks the package index for metadata only and writes run.txt, test.txt, torch-cpu.txt,
torch-cuda.txt, starter.txt, test-models.txt and test-converter.txt, which pip reads in its hash
mode. Wheels for CPython 3.11 to 3.13 on 64-bit Linux (glibc) and Windows are listed; source
archives are not, so that no package's build script ever runs on a person's machine. The one
exception is the archive in test-converter.txt, which is taken apart and never built.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PYTHONS = ("cp311", "cp312", "cp313", "py3", "py2.py3")
HEADER = "# Written by make_lock.py from wanted.toml; do not edit by hand.\n"


@dataclass(frozen=True, slots=True)
class Wheel:
    """One file of a package: its name, and its SHA-256 in hexadecimal."""

    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Pin:
    """One locked package: normalised name, exact version, environment marker or "", wheels.

    ``source`` is its source archive, where the index has one.
    """

    name: str
    version: str
    marker: str
    wheels: tuple[Wheel, ...]
    source: Wheel | None = None


def main() -> int:
    """Resolve every set together, so that they agree, and write one file a set."""
    wanted = tomllib.loads((HERE / "wanted.toml").read_text("utf-8"))
    torch = f"torch=={wanted['torch']['version']}"
    triton = f"{wanted['torch']['windows_triton']} ; sys_platform == 'win32'"
    left_out = set(wanted["left_out"])
    everything = resolve([torch, triton, *wanted["run"], *wanted["test"]])
    run = set(resolve([torch, *wanted["run"]], everything)) - left_out
    cuda = {name for name in everything if name.startswith(("nvidia-", "cuda-", "triton"))}
    run -= cuda | {"torch"}
    test = set(everything) - run - cuda - {"torch"} - set(wanted["left_out_of_test"])
    test |= set(wanted["test_without_gpu"])
    write("run.txt", (everything[name] for name in run))
    write("test.txt", (everything[name] for name in test))
    builds = wanted["torch"]["builds"]
    write("torch-cpu.txt", cpu_builds(everything["torch"], builds), name_files=True)
    cuda_pins = [*cuda_builds(everything["torch"], builds), *(everything[name] for name in cuda)]
    write("torch-cuda.txt", cuda_pins, name_files=True)
    for models in ("starter", "test-models"):
        write(f"{models}.txt", resolve(wanted[models], alone=True).values())
    converter = resolve(wanted["test-converter"], alone=True)
    write("test-converter.txt", (of_source(pin) for pin in converter.values()))
    return 0


def resolve(
    wishes: Sequence[str], agreed: Mapping[str, Pin] | None = None, *, alone: bool = False
) -> dict[str, Pin]:
    """Everything that ``wishes`` need, at the versions of ``agreed`` where it names them.

    ``alone`` leaves out what they need: wheels that carry models are taken apart, not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        wish_file, pin_file = Path(folder, "wishes.in"), Path(folder, "agreed.txt")
        answer = Path(folder, "pylock.lock.toml")
        wish_file.write_text("\n".join(wishes), "utf-8")
        pin_file.write_text("\n".join(f"{p.name}=={p.version}" for p in (agreed or {}).values()))
        subprocess.run(
            ["uv", "pip", "compile", "--no-config", "--universal", "--python-version", "3.11",
             "--fork-strategy", "fewest", "--format", "pylock.toml",
             "--quiet", "-c", pin_file, "-o", answer, wish_file,
             *(["--no-deps"] if alone else [])],
            check=True,
        )  # fmt: skip
        found = tomllib.loads(answer.read_text("utf-8"))["packages"]
    found = [entry for entry in found if "== 'emscripten'" not in entry.get("marker", "")]
    pins = {entry["name"]: pin_of(entry) for entry in found}
    if len(pins) != len(found):
        sys.exit("a package has one version for some Pythons and another for others; pin it")
    return pins


def pin_of(entry: Mapping[str, Any]) -> Pin:
    """One package of a pylock file, with the wheels that Hearth's platforms can use."""
    files = [file_of(wheel) for wheel in entry.get("wheels", [])]
    usable = tuple(wheel for wheel in files if fits(wheel.file))
    source = file_of(entry["sdist"]) if "sdist" in entry else None
    return Pin(entry["name"], entry["version"], entry.get("marker", ""), usable, source)


def file_of(entry: Mapping[str, Any]) -> Wheel:
    """One file of a pylock file."""
    return Wheel(entry.get("name") or entry["url"].rsplit("/", 1)[-1], entry["hashes"]["sha256"])


def of_source(pin: Pin) -> Pin:
    """The package with its source archive in place of wheels."""
    if pin.source is None:
        sys.exit(f"{pin.name} {pin.version} has no source archive")
    return replace(pin, wheels=(pin.source,))


def fits(file: str) -> bool:
    """Whether a wheel is for a Python and a platform that Hearth runs on."""
    python, abi, platform = file.removesuffix(".whl").split("-")[-3:]
    right_platform = (
        platform == "any"
        or "win_amd64" in platform
        or ("manylinux" in platform and "x86_64" in platform)
    )
    return right_platform and (abi == "abi3" or python in PYTHONS)


def cpu_builds(torch: Pin, builds: Iterable[Mapping[str, str]]) -> list[Pin]:
    """The CPU build: listed builds on Linux, the index's own wheels (CPU only) on Windows."""
    linux = tuple(Wheel(b["file"], b["sha256"]) for b in builds if b["backend"] == "cpu")
    windows = tuple(wheel for wheel in torch.wheels if "win_amd64" in wheel.file)
    return [
        Pin("torch", f"{torch.version}+cpu", "sys_platform == 'linux'", linux),
        Pin("torch", torch.version, "sys_platform == 'win32'", windows),
    ]


def cuda_builds(torch: Pin, builds: Iterable[Mapping[str, str]]) -> list[Pin]:
    """The CUDA build: the index's wheels on Linux; on Windows only what `wanted.toml` lists."""
    linux = tuple(wheel for wheel in torch.wheels if "manylinux" in wheel.file)
    listed = tuple(Wheel(b["file"], b["sha256"]) for b in builds if b["backend"] == "cuda")
    pins = [Pin("torch", torch.version, "sys_platform == 'linux'", linux)]
    if listed:
        version = listed[0].file.split("-")[1]
        pins.append(Pin("torch", version, "sys_platform == 'win32'", listed))
    return pins


def write(name: str, pins: Iterable[Pin], *, name_files: bool = False) -> None:
    """Write one requirements file; ``name_files`` adds the wheels' names as comments."""
    parts = [HEADER]
    for pin in sorted(pins, key=lambda each: (each.name, each.marker)):
        if not pin.wheels:
            sys.exit(f"{pin.name} {pin.version} has no wheel that fits; it cannot be locked")
        if name_files:
            parts.extend(f"# {wheel.file}\n" for wheel in pin.wheels)
        marker = f" ; {pin.marker}" if pin.marker else ""
        hashes = sorted({f"    --hash=sha256:{wheel.sha256}" for wheel in pin.wheels})
        parts.append(" \\\n".join([f"{pin.name}=={pin.version}{marker}", *hashes]) + "\n")
    (HERE / name).write_text("".join(parts), "utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main())
