"""Taking a person's home directory and name out of a text that may be shown to others. Pure."""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable
from pathlib import Path


def without_person(home: Path | None = None, user: str | None = None) -> Callable[[str], str]:
    """What takes them out of a text; those of who runs this where none are given."""
    home = home if home is not None else Path.home()
    name = user if user is not None else _user()
    homes = [path for path in dict.fromkeys((str(home.resolve()), str(home))) if len(path) > 1]
    pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")

    def shown(text: str) -> str:
        for spelling in homes:
            text = text.replace(spelling, "~")
        return pattern.sub("USER", text) if len(name) > 1 else text

    return shown


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
