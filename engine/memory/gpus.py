"""NVIDIA's GPUs as their driver reports them, without torch or CUDA.

The driver's own library answers (NVML, through ``nvidia-ml-py``); it is imported when somebody
asks. Without driver or library there is no GPU. One that does not answer counts as having nothing,
so that no plan is made for it. A slice of a GPU (MIG) is not told apart from the whole.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from engine.memory.pools import GPU, PoolReading

LIBRARY: Final = "pynvml"

_LOG = logging.getLogger(__name__)
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class GpuCard:
    """One GPU with what decides whether it can be used, and whose states are whose.

    Attributes:
        pool: its memory now; its label is the card's name.
        capability: CUDA's, such as (9, 0).
        driver: the driver's version, such as "580.65.06".
        uuid: as CUDA says it too, "GPU-" and so on.
    """

    pool: PoolReading
    capability: tuple[int, int]
    driver: str
    uuid: str

    @property
    def words(self) -> tuple[str, str]:
        """Capability and driver, for people."""
        major, minor = self.capability
        return f"compute capability {major}.{minor}", f"driver {self.driver}"


def _own_library() -> Any:
    return importlib.import_module(LIBRARY)


def read_gpus(library: Callable[[], Any] = _own_library) -> tuple[PoolReading, ...]:
    """Every GPU in the driver's order, as the pools "gpu0", "gpu1" and so on."""
    return _asked(library, _reading)


def read_cards(library: Callable[[], Any] = _own_library) -> tuple[GpuCard, ...]:
    """Every GPU that answers all that is asked, in the same order."""
    return tuple(card for card in _asked(library, _card) if card is not None)


def _asked(library: Callable[[], Any], ask: Callable[[Any, int], Found]) -> tuple[Found, ...]:
    """One answer a GPU."""
    try:
        nvml = library()
    except ImportError:
        return ()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        _LOG.debug("no GPU found reason=%s", error)
        return ()
    try:
        return tuple(ask(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
    except nvml.NVMLError as error:
        _LOG.warning("GPUs not counted reason=%s", error)
        return ()
    finally:
        _end(nvml)


def _card(nvml: Any, index: int) -> GpuCard | None:
    pool = _reading(nvml, index)
    if not pool.total_bytes:
        return None
    try:
        device = nvml.nvmlDeviceGetHandleByIndex(index)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(device)
        driver = str(nvml.nvmlSystemGetDriverVersion())
        uuid = str(nvml.nvmlDeviceGetUUID(device))
    except nvml.NVMLError as error:
        _LOG.warning("GPU not asked pool=%s reason=%s", pool.name, error)
        return None
    return GpuCard(pool, (int(major), int(minor)), driver, uuid)


def _reading(nvml: Any, index: int) -> PoolReading:
    name = f"{GPU}{index}"
    try:
        device = nvml.nvmlDeviceGetHandleByIndex(index)
        label = str(nvml.nvmlDeviceGetName(device))
        memory = nvml.nvmlDeviceGetMemoryInfo(device)
        total, free = int(memory.total), int(memory.free)
        own = _own_bytes(nvml, device)
    except nvml.NVMLError as error:
        _LOG.warning("GPU not read pool=%s reason=%s", name, error)
        return PoolReading(name, 0, 0, label="GPU that does not answer")
    if not 0 <= free <= total:
        _LOG.warning("GPU read wrong pool=%s total=%d free=%d", name, total, free)
        return PoolReading(name, 0, 0, label=label)
    return PoolReading(name, total, free, max(0, total - free - own), label)


def _own_bytes(nvml: Any, device: Any) -> int:
    """What this process holds there; 0 where the driver does not say, as on Windows."""
    try:
        running = nvml.nvmlDeviceGetComputeRunningProcesses(device)
    except nvml.NVMLError:
        return 0
    return sum(each.usedGpuMemory or 0 for each in running if each.pid == os.getpid())


def _end(nvml: Any) -> None:
    try:
        nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        _LOG.info("driver's library not closed reason=%s", error)
