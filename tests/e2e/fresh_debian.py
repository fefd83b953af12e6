"""Sets Hearth up in a Debian that has nothing but Python, and times it. Run by hand, as root::

    python3 tests/e2e/fresh_debian.py ROOT [--mirror URL] [--see PATH]... [--pass NAME]...

ROOT is made with Debian's `debootstrap` when it is not there (package debootstrap), and a copy of
it is used, so that each run begins fresh. `--see` shows a file or folder of this machine at the
same place inside (pip's configuration, wheels, certificates), `--pass` hands a variable on. The
checkout is cloned, so what is not committed is not tested. Needs Xvfb and xwininfo (packages xvfb,
x11-utils) on this machine for the steps with a window. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
INSIDE = Path("/home/hearth/checkout")
DISPLAY = ":93"
SET_UP = ("python3", "installer/bootstrap.py", "run")
HEARTH = (".venv/bin/hearth",)
QUESTION = "What is the capital of France?"
WINDOW_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Debian:
    """One root folder that commands run in."""

    root: Path
    variables: dict[str, str]

    def start(
        self, order: Sequence[str], user: str = "root:root", display: str = ""
    ) -> subprocess.Popen[str]:
        """Start ``order`` in the checkout inside, with a nearly empty environment."""
        home = "/root" if user.startswith("root") else "/tmp"
        own = {"HOME": home, "LANG": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        if display:
            own["DISPLAY"] = display
        words = [f"{name}={value}" for name, value in {**self.variables, **own}.items()]
        command = f'cd {INSIDE} && exec "$@"'
        return subprocess.Popen(
            ["chroot", f"--userspec={user}", self.root, "/usr/bin/env", "-i", *words,
             "sh", "-c", command, "sh", *order],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(self, order: Sequence[str], user: str = "root:root") -> tuple[int, str, float]:
        """Run ``order`` to its end: exit code, output, seconds."""
        began = time.monotonic()
        child = self.start(order, user)
        output, _ = child.communicate()
        return child.returncode, output, round(time.monotonic() - began, 2)


def main() -> int:
    """Go through all steps; 1 when one of them is not as it should be."""
    wish = parse()
    if not wish.root.exists():
        bootstrap(wish.root, wish.mirror)
    with fresh_copy(wish.root, wish.see) as root:
        debian = Debian(root, {name: os.environ[name] for name in wish.hand_on})
        results = steps(debian)
    print(json.dumps(results))
    return 0 if all(result["ok"] for result in results.values()) else 1


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("root", type=Path)
    parser.add_argument("--mirror", default="http://deb.debian.org/debian")
    parser.add_argument("--see", type=Path, action="append", default=[])
    parser.add_argument("--pass", dest="hand_on", action="append", default=[])
    return parser.parse_args()


def bootstrap(root: Path, mirror: str) -> None:
    """Make a Debian 12 with Python and certificates, and nothing else."""
    order = ["debootstrap", "--variant=minbase", "--include=python3,ca-certificates", "bookworm"]
    subprocess.run([*order, root, mirror], check=True)


@contextlib.contextmanager
def fresh_copy(clean: Path, see: Sequence[Path]) -> Iterator[Path]:
    """A copy of ``clean`` with a clone of the checkout and what it may see; removed afterwards."""
    root = clean.with_name(f"{clean.name}.used")
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["cp", "-a", clean, root], check=True)
    (root / str(INSIDE)[1:]).parent.mkdir(parents=True)
    subprocess.run(
        ["git", "clone", "--quiet", "--no-hardlinks", CHECKOUT, root / str(INSIDE)[1:]], check=True
    )
    shutil.copy("/etc/resolv.conf", root / "etc")
    mounted = [mount(root, Path("/proc")), mount(root, Path("/dev"))]
    for path in see:
        if path.is_dir():
            mounted.append(mount(root, path))
        else:
            target = root / str(path)[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    try:
        yield root
    finally:
        for target in reversed(mounted):
            subprocess.run(["umount", target], check=True)
        shutil.rmtree(root)


def mount(root: Path, path: Path) -> Path:
    """Show a folder of this machine at the same place inside."""
    target = root / str(path)[1:]
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "--bind", path, target], check=True)
    return target


def steps(debian: Debian) -> dict[str, dict[str, object]]:
    """What a person would do, in order: each with its seconds and whether it went as promised."""
    results: dict[str, dict[str, object]] = {}

    def note(name: str, ok: bool, seconds: float, output: str = "") -> None:
        results[name] = {"ok": ok, "seconds": seconds}
        print(f"{'ok  ' if ok else 'BAD '} {name}: {seconds} s\n{output}", file=sys.stderr)

    code, output, seconds = debian.run(SET_UP, user="nobody:nogroup")
    said = "sudo apt-get install python3.11-venv" in output
    note("without rights: the command is named", code == 1 and said, seconds, output)

    code, output, seconds = debian.run(SET_UP)
    note("set-up without a display: exit code 2", code == 2 and "hearth ask" in output, seconds,
         output)  # fmt: skip

    code, output, seconds = debian.run([*HEARTH, "ask", "--seed", "1", QUESTION])
    note("hearth ask", code == 0 and "Paris" in output, seconds, output)

    shutil.rmtree(debian.root / str(INSIDE / ".venv")[1:])
    note_window(debian, "first start (no environment) to the window", note)
    note_window(debian, "second start to the window", note)
    note_window(debian, "third start to the window", note)
    return results


def note_window(debian: Debian, name: str, note: object) -> None:
    """Start with a display, and time until a window of Hearth is on it."""
    assert callable(note)
    with display():
        began = time.monotonic()
        child = debian.start(SET_UP, display=DISPLAY)
        shown = wait_for_window(child)
        seconds = round(time.monotonic() - began, 2)
        used = f"processor time of the window's process until then: {processor_seconds(child)} s"
        child.terminate()
        output, _ = child.communicate()
        note(name, shown, seconds, f"{output}{used}\n")


def processor_seconds(child: subprocess.Popen[str]) -> float:
    """What a process has used so far, which a busy machine does not stretch as it does seconds."""
    fields = Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def display() -> Iterator[None]:
    """A virtual screen."""
    server = subprocess.Popen(
        ["Xvfb", DISPLAY, "-screen", "0", "1280x800x24", "-nolisten", "tcp"],
        stderr=subprocess.DEVNULL,
    )
    try:
        while not windows_can_be_listed():
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


def windows_can_be_listed() -> bool:
    """Whether the virtual screen answers."""
    return listed_windows() is not None


def listed_windows() -> str | None:
    """The tree of windows on the virtual screen, None while it does not answer."""
    order = ["xwininfo", "-display", DISPLAY, "-root", "-tree"]
    ended = subprocess.run(order, capture_output=True, text=True, check=False)
    return ended.stdout if ended.returncode == 0 else None


def wait_for_window(child: subprocess.Popen[str]) -> bool:
    """Wait until a window named Hearth is there; False when the child ends or time is up."""
    deadline = time.monotonic() + WINDOW_LIMIT_S
    while time.monotonic() < deadline and child.poll() is None:
        if '"Hearth' in (listed_windows() or "") or "- Hearth" in (listed_windows() or ""):
            return True
        time.sleep(0.05)
    return False


if __name__ == "__main__":
    sys.exit(main())
