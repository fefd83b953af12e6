"""Makes the pictures: ``python -m tests.screenshots FOLDER [STATE...]``.

Each state runs in a process of its own (offscreen, unless QT_QPA_PLATFORM says otherwise), since
the scale of a picture belongs to the whole process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.screenshots.states import SCALES, STATES, make_state


def main(arguments: list[str]) -> int:
    """Make all pictures, or those named."""
    if len(arguments) == 3 and arguments[0] == "--one":
        with tempfile.TemporaryDirectory() as folder:
            make_state(arguments[1], Path(arguments[2]), Path(folder))
        return 0
    target = Path(arguments[0])
    target.mkdir(parents=True, exist_ok=True)
    for name in arguments[1:] or STATES:
        picture = target / f"{name}.png"
        environment = {
            **os.environ,
            "QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen"),
            "QT_SCALE_FACTOR": SCALES.get(name, "1"),
        }
        command = [sys.executable, "-m", "tests.screenshots", "--one", name, str(picture)]
        subprocess.run(command, env=environment, check=True)
        print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
