"""Whether torch and Triton can use a card that the driver lists, and which device it is there."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Final

import torch

from engine.errors import DeviceLost
from engine.memory.gpus import GpuCard

LEAST_DRIVERS: Final = {"12": "525", "13": "580"}
"""Major version of CUDA that torch was built with -> the oldest driver that runs it."""


def device_of(card: GpuCard) -> torch.device:
    """The device that is this card.

    Raises:
        DeviceLost: it cannot be used, with the sentence that says why.
    """
    built = torch.version.cuda
    if built is None:
        raise DeviceLost("The installed torch computes on processors only; install it for CUDA.")
    if find_spec("triton") is None:
        raise DeviceLost("Triton is not installed, which compiles what a GPU computes.")
    if not torch.cuda.is_available():
        wanted = LEAST_DRIVERS.get(built.partition(".")[0], "a newer one")
        raise DeviceLost(
            f"The GPU's driver {card.driver} does not run CUDA {built}, which needs {wanted} or "
            "newer.",
            found=card.driver,
            wanted=wanted,
        )
    _check_compiler()
    ids = [_uuid(index) for index in range(torch.cuda.device_count())]
    if card.uuid in ids:
        return torch.device("cuda", ids.index(card.uuid))
    if len(ids) == 1:  # a slice of a card has an id of its own
        return torch.device("cuda", 0)
    raise DeviceLost(f"CUDA is not shown the {card.pool.label} that the driver lists.")


def _check_compiler() -> None:
    """Have Triton ready its driver, for which it may need a C compiler."""
    try:
        importlib.import_module("triton").runtime.driver.active.get_current_device()
    except (RuntimeError, OSError) as error:
        first_line = str(error).partition("\n")[0]
        raise DeviceLost(f"Triton cannot compile for it here: {first_line}") from error


def _uuid(index: int) -> str:
    found = torch.cuda.get_device_properties(index)
    return f"GPU-{found.uuid}"
