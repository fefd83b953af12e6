"""Whose states are whose: everything that decides the bytes of a kept state, as facts. No torch.

Two engines share a folder of states only where every fact is equal. That is stricter than need be:
a version of torch that changes no bit is a new identity, and conversations are read once again. The
chat template is among the facts although a state is found by its ids and never by text: the design
lists it, and a checkpoint whose template was mended is another one to people. A fixed prompt's
state, hashed when a model is warmed (the probe), has the last word over all of this.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import kernels
from engine.cache.formats import KvFormat
from engine.checkpoint.source import CheckpointSource
from engine.config import EngineConfig
from engine.device import device_facts, products_path
from engine.memory.gpus import GpuCard
from engine.models.spec import ModelSpec
from engine.states.border import ModelIdentity

LAYOUT: Final = "1"
"""Of extents and their names; another number where the same rows would be stored otherwise."""
SAMPLE_BYTES: Final = 64 * 1024
MIDDLE_SAMPLES: Final = 64
LIBRARIES: Final = ("numpy", "torch", "triton")
COMPUTING: Final = (
    "backend.py",
    "cache",
    "checkpoint/published/packing",
    "forward",
    "gpu",
    "models",
    "native",
    "runner.py",
)
"""What of the engine's sources decides a bit of a state, beside all of ``kernels``."""
SUFFIXES: Final = (".py", ".so", ".dll")

_ENGINE: Final = Path(__file__).resolve().parents[1]
_KERNELS: Final = Path(next(iter(kernels.__path__))).resolve()


@dataclass(frozen=True, slots=True)
class StateLayout:
    """How one loaded model's states are computed and laid out.

    Attributes:
        grid_rows: at whose multiples a state may be kept; chunk_rows: of one prompt chunk.
        extent_bytes: of a whole extent by part, see ``ModelIdentity``.
    """

    kv_format: KvFormat
    grid_rows: int
    chunk_rows: int
    extent_bytes: Mapping[int, int]


def identity_of(
    source: CheckpointSource,
    spec: ModelSpec,
    layout: StateLayout,
    config: EngineConfig,
    card: GpuCard | None = None,
) -> ModelIdentity:
    """The identity of a loaded model's states on this machine; reads a few MB of its files.

    Args:
        card: the GPU that computes; None for the processor.

    Raises:
        OSError: a file of the checkpoint is gone.
    """
    template = source.chat_template
    facts = (
        ("layout", LAYOUT),
        ("checkpoint", source.header_digest),
        ("samples", sampled_digest(source.files)),
        ("model", _digest(repr(spec).encode())),
        ("template", "none" if template is None else _digest(template.encode())),
        ("kv", layout.kv_format.value),
        ("grid", str(layout.grid_rows)),
        ("chunk", str(layout.chunk_rows)),
        ("sources", sources_digest(computing_sources())),
        *((name, _version(name)) for name in LIBRARIES),
        ("system", sys.platform),
        *(_processor_facts(config) if card is None else _card_facts(card)),
    )
    whole = all(group.window is None for group in spec.groups) and spec.recurrent is None
    return ModelIdentity(source.name, facts, dict(layout.extent_bytes), can_cut=whole)


def _processor_facts(config: EngineConfig) -> tuple[tuple[str, str], ...]:
    device = device_facts(config.threads)
    return (
        ("processor", device.name),
        ("capabilities", " ".join(device.capabilities)),
        ("threads", str(device.threads)),
        ("compute", products_path(config.compute)),
    )


def _card_facts(card: GpuCard) -> tuple[tuple[str, str], ...]:
    """How kernels are launched is in their sources, which are hashed whole."""
    capability, driver = card.words
    return (("gpu", card.pool.label), ("capabilities", capability), ("driver", driver))


def sampled_digest(files: Iterable[Path]) -> str:
    """SHA-256 (hex) over blocks of every file: the first, the last and evenly many between.

    A file of no more than all of them is hashed whole. Finds a checkpoint that was trained on, or
    repacked, under an equal header; not one byte changed by hand.
    """
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            digest.update(f"{path.name} {size}\n".encode())
            for at in _sample_offsets(size):
                file.seek(at)
                digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()


def computing_sources() -> Iterator[tuple[str, Path]]:
    """(name, path) of every file of Hearth that decides a bit of a state, in order of name."""
    places = [("kernels", _KERNELS), *((f"engine/{name}", _ENGINE / name) for name in COMPUTING)]
    for name, place in places:
        if place.is_file():
            yield name, place
            continue
        found = [path for path in place.rglob("*") if path.suffix in SUFFIXES and path.is_file()]
        for path in sorted(found):
            yield f"{name}/{path.relative_to(place).as_posix()}", path


def sources_digest(files: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 (hex) over names and contents; a text's line ends do not count."""
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        if path.suffix == ".py":
            content = content.replace(b"\r\n", b"\n")
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _sample_offsets(size: int) -> Iterator[int]:
    """Where the blocks begin, ascending; the last one ends with the file."""
    count = MIDDLE_SAMPLES + 2
    if size <= count * SAMPLE_BYTES:
        yield from range(0, size, SAMPLE_BYTES)
        return
    last = size - SAMPLE_BYTES
    for number in range(count):
        yield last * number // (count - 1)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
