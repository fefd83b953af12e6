"""The driver's library as the engine uses it, with GPUs and failures to order."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


class NVMLError(Exception):
    """What the real library raises for everything."""


@dataclass(frozen=True)
class FakeMemory:
    total: int
    free: int


@dataclass(frozen=True)
class FakeRunning:
    pid: int
    usedGpuMemory: int | None  # noqa: N815 - the real one's name


@dataclass(frozen=True)
class FakeGpu:
    """One GPU; ``own_bytes`` None is what Windows says of a process's share."""

    name: str | bytes
    total_bytes: int
    free_bytes: int
    own_bytes: int | None = 0
    fails: str = ""
    capability: tuple[int, int] = (9, 0)
    uuid: str = "GPU-1"


@dataclass
class FakeNvml:
    """Counts that each start is followed by an end."""

    gpus: list[FakeGpu]
    fails: str = ""
    open: int = 0
    asked: list[str] = field(default_factory=list)
    NVMLError = NVMLError

    def _say(self, name: str, gpu: FakeGpu | None = None) -> None:
        self.asked.append(name)
        if name in (self.fails, gpu.fails if gpu else ""):
            raise NVMLError(f"{name} failed")

    def nvmlInit(self) -> None:  # noqa: N802
        self._say("init")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1
        self._say("shutdown")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        self._say("count")
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        self._say("handle", self.gpus[index])
        return self.gpus[index]

    def nvmlDeviceGetName(self, device: FakeGpu) -> str | bytes:  # noqa: N802
        self._say("name", device)
        return device.name

    def nvmlDeviceGetMemoryInfo(self, device: FakeGpu) -> FakeMemory:  # noqa: N802
        self._say("memory", device)
        return FakeMemory(device.total_bytes, device.free_bytes)

    def nvmlDeviceGetCudaComputeCapability(self, device: FakeGpu) -> tuple[int, int]:  # noqa: N802
        self._say("capability", device)
        return device.capability

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        self._say("driver")
        return "580.65.06"

    def nvmlDeviceGetUUID(self, device: FakeGpu) -> str:  # noqa: N802
        self._say("uuid", device)
        return device.uuid

    def nvmlDeviceGetComputeRunningProcesses(  # noqa: N802
        self, device: FakeGpu
    ) -> list[FakeRunning]:
        self._say("running", device)
        return [FakeRunning(os.getpid(), device.own_bytes), FakeRunning(os.getpid() + 1, 999)]
