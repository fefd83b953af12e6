"""Makes small wheels by hand, so that pip can be used for real without any network."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, bytes]) -> str:
    """Write ``name-version-py3-none-any.whl`` with ``files``; returns its lock line.

    ``version`` may carry a local part, as torch's CPU build does.
    """
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    members = {
        **files,
        f"{info}/METADATA": about.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, content in members.items():
            # A ZipInfo of its own has a fixed date, so that the same content has the same hash.
            archive.writestr(zipfile.ZipInfo(member), content)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"{name}=={version} \\\n    --hash=sha256:{digest}\n"
