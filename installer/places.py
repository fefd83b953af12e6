"""Where set-up works: the checkout, its environment and the files in them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Places:
    """The paths of one checkout; ``windows`` decides how an environment is laid out."""

    root: Path
    windows: bool

    @property
    def environment(self) -> Path:
        """The virtual environment."""
        return self.root / ".venv"

    @property
    def scripts(self) -> Path:
        """The environment's programs."""
        return self.environment / ("Scripts" if self.windows else "bin")

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.scripts / ("python.exe" if self.windows else "python")

    @property
    def launcher(self) -> Path:
        """The `hearth` command."""
        return self.scripts / ("hearth.cmd" if self.windows else "hearth")

    @property
    def packages(self) -> Path:
        """The folder that packages are installed into, for the Python that runs this."""
        if self.windows:
            return self.environment / "Lib" / "site-packages"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.environment / "lib" / version / "site-packages"

    @property
    def stamp(self) -> Path:
        """What is installed, written last; see ``stamp``."""
        return self.environment / "hearth-setup.json"

    @property
    def lock(self) -> Path:
        """The folder of the lock."""
        return self.root / "installer" / "lock"

    @property
    def test_models(self) -> Path:
        """Where the tests find the two small models."""
        return self.root / ".models"


def places(root: Path = ROOT) -> Places:
    """The places of the checkout at ``root`` on this system."""
    return Places(root, os.name == "nt")
