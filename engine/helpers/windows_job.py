"""Windows job objects: a group of processes with limits, ended when its last handle closes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What the processes of a job may take; None does not limit.

    Attributes:
        memory_bytes: committed by one process.
        processes: alive at once.
        cpu_seconds: user time of one process.
    """

    memory_bytes: int | None = None
    processes: int | None = None
    cpu_seconds: int | None = None


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes
    from typing import Final

    _EXTENDED_LIMIT_INFORMATION: Final = 9
    _PROCESS_TIME: Final = 0x2
    _ACTIVE_PROCESS: Final = 0x8
    _PROCESS_MEMORY: Final = 0x100
    _DIE_ON_UNHANDLED_EXCEPTION: Final = 0x400
    _KILL_ON_JOB_CLOSE: Final = 0x2000
    _TERMINATE: Final = 0x1
    _SET_QUOTA: Final = 0x100
    _TICKS_PER_SECOND: Final = 10_000_000

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("PerProcessUserTimeLimit", ctypes.c_int64),
            ("PerJobUserTimeLimit", ctypes.c_int64),
            ("LimitFlags", wintypes.DWORD),
            ("MinimumWorkingSetSize", ctypes.c_size_t),
            ("MaximumWorkingSetSize", ctypes.c_size_t),
            ("ActiveProcessLimit", wintypes.DWORD),
            ("Affinity", ctypes.c_size_t),
            ("PriorityClass", wintypes.DWORD),
            ("SchedulingClass", wintypes.DWORD),
        )

    class _ExtendedLimits(ctypes.Structure):
        _fields_ = (
            ("BasicLimitInformation", _BasicLimits),
            ("IoInfo", ctypes.c_uint64 * 6),
            ("ProcessMemoryLimit", ctypes.c_size_t),
            ("JobMemoryLimit", ctypes.c_size_t),
            ("PeakProcessMemoryUsed", ctypes.c_size_t),
            ("PeakJobMemoryUsed", ctypes.c_size_t),
        )

    class Job:
        """Owner of one job object. Closing it ends every process that was assigned to it."""

        def __init__(self, limits: JobLimits) -> None:
            self._kernel = _kernel()
            self._handle = self._kernel.CreateJobObjectW(None, None)
            if not self._handle:
                raise ctypes.WinError(ctypes.get_last_error())
            wanted = _wanted(limits)
            if not self._kernel.SetInformationJobObject(
                self._handle,
                _EXTENDED_LIMIT_INFORMATION,
                ctypes.byref(wanted),
                ctypes.sizeof(wanted),
            ):
                error = ctypes.WinError(ctypes.get_last_error())
                self.close()
                raise error

        def assign(self, process: int) -> None:
            """Put a process, named by its handle, into the job."""
            if not self._kernel.AssignProcessToJobObject(self._handle, wintypes.HANDLE(process)):
                raise ctypes.WinError(ctypes.get_last_error())

        def close(self) -> None:
            """Close the handle, and with the last one end the job's processes."""
            if self._handle:
                self._kernel.CloseHandle(self._handle)
                self._handle = None

    def end_with_us(pid: int) -> Callable[[], None]:
        """Let a child end with this process; what is returned ends it now."""
        job = Job(JobLimits())
        kernel = _kernel()
        process = kernel.OpenProcess(_SET_QUOTA | _TERMINATE, False, pid)
        if process:
            job.assign(process)
            kernel.CloseHandle(process)
        return job.close

    def own_process() -> int:
        """The pseudo handle of the calling process."""
        return int(_kernel().GetCurrentProcess())

    def _wanted(limits: JobLimits) -> _ExtendedLimits:
        wanted = _ExtendedLimits()
        basic = wanted.BasicLimitInformation
        basic.LimitFlags = _KILL_ON_JOB_CLOSE | _DIE_ON_UNHANDLED_EXCEPTION
        if limits.memory_bytes is not None:
            basic.LimitFlags |= _PROCESS_MEMORY
            wanted.ProcessMemoryLimit = limits.memory_bytes
        if limits.processes is not None:
            basic.LimitFlags |= _ACTIVE_PROCESS
            basic.ActiveProcessLimit = limits.processes
        if limits.cpu_seconds is not None:
            basic.LimitFlags |= _PROCESS_TIME
            basic.PerProcessUserTimeLimit = limits.cpu_seconds * _TICKS_PER_SECOND
        return wanted

    def _kernel() -> ctypes.WinDLL:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.CreateJobObjectW.argtypes = (wintypes.LPVOID, wintypes.LPCWSTR)
        kernel.CreateJobObjectW.restype = wintypes.HANDLE
        kernel.SetInformationJobObject.argtypes = (
            wintypes.HANDLE,
            ctypes.c_int,
            wintypes.LPVOID,
            wintypes.DWORD,
        )
        kernel.SetInformationJobObject.restype = wintypes.BOOL
        kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
        kernel.AssignProcessToJobObject.restype = wintypes.BOOL
        kernel.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
        kernel.OpenProcess.restype = wintypes.HANDLE
        kernel.GetCurrentProcess.argtypes = ()
        kernel.GetCurrentProcess.restype = wintypes.HANDLE
        kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
        kernel.CloseHandle.restype = wintypes.BOOL
        return kernel

else:

    def end_with_us(pid: int) -> Callable[[], None]:
        """Nothing to tie: the child asked the kernel for a death signal itself."""
        del pid
        return _nothing

    def _nothing() -> None:
        return None
