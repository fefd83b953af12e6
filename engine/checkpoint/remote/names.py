"""Names of models on the hub as a person types them, and file names that may be made of a listing.

    OWNER/REPOSITORY                  what it holds, if that is one model
    OWNER/REPOSITORY:Q4_K_M           its GGUF file of that quantization
    OWNER/REPOSITORY/FOLDER/FILE.gguf that file

Pure. What the hub answers is judged here too, before any of it becomes a path or an address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

ENDPOINT: Final = "https://huggingface.co"
PART: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_NAME: Final = re.compile(rf"({PART}/{PART})(?::([A-Za-z0-9][\w.-]{{0,40}})|/(.+))?", re.ASCII)
_FILE: Final = re.compile(r"[A-Za-z0-9_+][\w.+ ()-]{0,200}", re.ASCII)
_FOLDERS: Final = 4
_WEIGHTS: Final = (".gguf", ".safetensors")


@dataclass(frozen=True, slots=True)
class HubName:
    """One model on the hub.

    Attributes:
        quantization: a part of a GGUF file's name, such as "Q4_K_M"; None for any.
        file: a path in the repository; None for whatever it holds.
    """

    repository: str
    quantization: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.repository}/{self.file}"
        return self.repository + (f":{self.quantization}" if self.quantization else "")


def hub_name(text: str) -> HubName | None:
    """What a text means on the hub; None for what can be no name there."""
    found = _NAME.fullmatch(text)
    if found is None or ".." in text or "--" in found[1]:
        return None
    repository, quantization, file = found[1], found[2], found[3]
    if file is not None and not (is_safe(file) and file.lower().endswith(".gguf")):
        return None
    if file is None and repository.lower().endswith(_WEIGHTS):
        return None
    return HubName(repository, quantization, file)


def is_safe(path: str) -> bool:
    """Whether a path of a listing is one of plain names, none of which leads elsewhere."""
    parts = path.split("/")
    return len(parts) <= _FOLDERS and all(
        _FILE.fullmatch(part) is not None and ".." not in part and part[-1] not in " ."
        for part in parts
    )
