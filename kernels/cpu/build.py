"""Build the CPU library for Linux and Windows with zig's C compiler, to the same bytes each time.

    python -m kernels.cpu.build [--check]

The results are committed beside this file, so that nobody needs a compiler to run Hearth. Only
zig, pinned in the test lock, builds them; ``--check`` builds into a temporary folder and compares,
which takes minutes. Each library also carries the digest of what it was built from, so that a test
without a compiler notices a stale one at once.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "native"
TARGETS = {
    "hearth_cpu-linux-x86_64.so": "x86_64-linux-gnu.2.17",
    "hearth_cpu-windows-x86_64.dll": "x86_64-windows-gnu",
}
COMMON = ("-std=c11", "-O3", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
STRICT = (*COMMON, "-fno-strict-aliasing", "-fvisibility=hidden", "-fno-sanitize=all", "-g0")
AVX2 = ("-mavx2", "-mfma", "-mf16c")
AVX512 = (
    *AVX2,
    "-mavx512f",
    "-mavx512bw",
    "-mavx512vl",
    "-mavx512dq",
    "-mavx512vnni",
    "-mprefer-vector-width=512",
)
UNITS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("pool", "pool.c", ()),
    ("step", "step.c", ()),
    ("records", "records.c", ()),
    ("avx2", "operations.c", (*AVX2, "-DHEARTH_OPERATIONS=hearth_operations_avx2")),
    ("avx512", "operations.c", (*AVX512, "-DHEARTH_OPERATIONS=hearth_operations_avx512")),
)


def source_digest() -> str:
    """SHA-256 over the C sources, the compiler's flags and the targets."""
    digest = hashlib.sha256(repr((STRICT, UNITS, sorted(TARGETS.items()))).encode())
    for path in sorted(SOURCES.iterdir()):
        text = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def build(name: str, target: str, folder: Path) -> Path:
    """Compile one library into ``folder`` and return its path; raises CalledProcessError."""
    objects: list[str] = []
    stamp = f'-DHEARTH_SOURCE_DIGEST="{source_digest()}"'
    for unit, source, flags in UNITS:
        made = folder / f"{name}.{unit}.o"
        options = (*STRICT, *_position(target), *flags, stamp)
        _zig(["cc", "-target", target, *options, "-c", source, "-o", made])
        objects.append(str(made))
    library = folder / name
    _zig(["cc", "-target", target, "-shared", "-s", *objects, "-o", library, *_libraries(target)])
    return library


def _position(target: str) -> tuple[str, ...]:
    return () if "windows" in target else ("-fPIC",)


def _libraries(target: str) -> tuple[str, ...]:
    return () if "windows" in target else ("-lm", "-lpthread")


def _zig(arguments: list[str | Path]) -> None:
    command = [sys.executable, "-m", "ziglang", *map(str, arguments)]
    subprocess.run(command, check=True, cwd=SOURCES)


def differing(folder: Path) -> list[str]:
    """Build everything into ``folder``; the names whose bytes differ from the committed ones."""
    return [
        name
        for name, target in TARGETS.items()
        if build(name, target, folder).read_bytes() != (HERE / name).read_bytes()
    ]


def _replace(path: Path, content: bytes) -> None:
    """Put a whole file in place of another: a process may have the old one mapped."""
    new = path.with_name(path.name + ".new")
    new.write_bytes(content)
    new.chmod(path.stat().st_mode)
    new.replace(path)


def main() -> int:
    """Build, or compare with what is committed; 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare, change nothing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if check:
            different = differing(folder)
            print("\n".join(f"{name} differs from its sources" for name in different) or "equal")
            return 1 if different else 0
        for name, target in TARGETS.items():
            _replace(HERE / name, build(name, target, folder).read_bytes())
            print(f"{name}: {(HERE / name).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
