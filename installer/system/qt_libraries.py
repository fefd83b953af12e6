"""The system libraries that Qt's wheels expect on Linux, and which Debian packages have them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from installer.problems import SetupProblem
from installer.report import Report
from installer.system import debian
from installer.system.children import run

DEBIAN_PACKAGES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libOpenGL.so.0": "libopengl0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-glx.so.0": "libxcb-glx0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xinput.so.0": "libxcb-xinput0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}
PURPOSE = "The window (Qt)"
LOADED = (
    "PySide6/QtCore.abi3.so",
    "PySide6/QtGui.abi3.so",
    "PySide6/QtWidgets.abi3.so",
    "PySide6/QtSvg.abi3.so",
    "PySide6/Qt/plugins/platforms/libqxcb.so",
    "PySide6/Qt/plugins/platforms/libqwayland.so",
    "PySide6/Qt/plugins/platforms/libqoffscreen.so",
)


def missing(packages: Path) -> tuple[str, ...]:
    """Names of the libraries that the loader cannot find for the parts of Qt that Hearth uses.

    Args:
        packages: the environment's site-packages.
    """
    if shutil.which("ldd") is None:
        return ()
    found: set[str] = set()
    for part in LOADED:
        if (packages / part).is_file():
            found |= not_found(run(["ldd", packages / part]).output.splitlines())
    return tuple(sorted(found))


def not_found(lines: Iterable[str]) -> set[str]:
    """The libraries that ldd's ``lines`` call "not found"; Qt's own do not count."""
    names = {line.split("=>")[0].strip() for line in lines if line.rstrip().endswith("not found")}
    return {name for name in names if not name.startswith(("libQt6", "libpyside", "libshiboken"))}


def provide(packages: Path, report: Report) -> None:
    """See that every library is there, installing what is missing where that is allowed.

    Raises:
        SetupProblem: something is missing and cannot be installed here.
    """
    names = missing(packages)
    wanted = sorted({DEBIAN_PACKAGES[name] for name in names if name in DEBIAN_PACKAGES})
    if wanted:
        with report.step("System libraries for the window"):
            debian.install(wanted, PURPOSE, report)
        names = missing(packages)
    if names:
        raise SetupProblem(
            f"{PURPOSE} misses the system libraries {', '.join(names)}; install them with your "
            "system's package manager and start the same command again."
        )
