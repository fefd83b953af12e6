"""The engine's configuration: frozen records, read once from the command line.

This is the only file of the engine that reads arguments. An unknown or unparsable argument is an
error. Nothing reads the environment.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Compute(Enum):
    """How products are computed.

    ``AUTO`` takes the fastest exact-enough path that the CPU offers; ``FLOAT32`` dequantizes and
    multiplies in float32 with a float32 KV cache, and is what other paths are measured against.
    """

    AUTO = "auto"
    FLOAT32 = "float32"


class Device(Enum):
    """What computes: ``AUTO`` takes a GPU where there is one that can, ``CPU`` never does."""

    AUTO = "auto"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What one engine process is started with.

    Attributes:
        data_directory: holds the lock file, caches and kept states; created by the app.
        compute: see ``Compute``.
        threads: worker threads of the CPU path; None takes the physical cores this process may use.
        state_quota_bytes: what kept states may take on the disk; None lets the engine choose, 0
            keeps none there.
        device: see ``Device``.
    """

    data_directory: Path
    compute: Compute = Compute.AUTO
    threads: int | None = None
    state_quota_bytes: int | None = None
    device: Device = Device.AUTO


def parse_arguments(arguments: Sequence[str]) -> EngineConfig:
    """Read the engine's command line; argparse exits with code 2 on anything unknown."""
    parser = argparse.ArgumentParser(prog="engine", allow_abbrev=False)
    parser.add_argument("--data-directory", type=Path, required=True)
    parser.add_argument("--compute", choices=[c.value for c in Compute], default=Compute.AUTO.value)
    parser.add_argument("--threads", type=_positive)
    parser.add_argument("--device", choices=[d.value for d in Device], default=Device.AUTO.value)
    parser.add_argument("--state-quota-bytes", type=_not_negative)
    found = parser.parse_args(arguments)
    return EngineConfig(
        data_directory=found.data_directory,
        compute=Compute(found.compute),
        threads=found.threads,
        state_quota_bytes=found.state_quota_bytes,
        device=Device(found.device),
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value


def _not_negative(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is a negative number")
    return value
