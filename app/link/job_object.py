"""Windows: a Job Object that ends the engine and its children when the app is gone.

The job is closed by the system with the app's last handle, also after a crash, and everything in it
is ended then. On other systems the engine sees to this itself (its stdin ends; PDEATHSIG on Linux)
and this module does nothing.
"""

from __future__ import annotations

import subprocess
import sys

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _KILL_ON_JOB_CLOSE = 0x2000
    _EXTENDED_LIMIT_INFORMATION = 9

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("per_process_user_time", ctypes.c_int64),
            ("per_job_user_time", ctypes.c_int64),
            ("limit_flags", wintypes.DWORD),
            ("minimum_working_set", ctypes.c_size_t),
            ("maximum_working_set", ctypes.c_size_t),
            ("active_process_limit", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priority_class", wintypes.DWORD),
            ("scheduling_class", wintypes.DWORD),
        )

    class _ExtendedLimits(ctypes.Structure):
        _fields_ = (
            ("basic", _BasicLimits),
            ("io_counters", ctypes.c_uint64 * 6),
            ("process_memory", ctypes.c_size_t),
            ("job_memory", ctypes.c_size_t),
            ("peak_process_memory", ctypes.c_size_t),
            ("peak_job_memory", ctypes.c_size_t),
        )

    class JobObject:
        """One job; owns its handle. Raises OSError where the system refuses one."""

        def __init__(self) -> None:
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.CreateJobObjectW.restype = wintypes.HANDLE
            self._handle = wintypes.HANDLE(self._kernel.CreateJobObjectW(None, None))
            limits = _ExtendedLimits()
            limits.basic.limit_flags = _KILL_ON_JOB_CLOSE
            self._check(
                self._kernel.SetInformationJobObject(
                    self._handle,
                    _EXTENDED_LIMIT_INFORMATION,
                    ctypes.byref(limits),
                    ctypes.sizeof(limits),
                )
            )

        def add(self, child: subprocess.Popen[bytes]) -> None:
            """Put a child into the job."""
            handle = wintypes.HANDLE(int(child._handle))  # type: ignore[attr-defined]
            self._check(self._kernel.AssignProcessToJobObject(self._handle, handle))

        def close(self) -> None:
            """End what is still in the job."""
            self._kernel.CloseHandle(self._handle)

        def _check(self, done: int) -> None:
            if not done:
                raise ctypes.WinError(ctypes.get_last_error())

else:

    class JobObject:
        """Nothing, on a system without jobs."""

        def add(self, child: subprocess.Popen[bytes]) -> None:
            """Do nothing."""

        def close(self) -> None:
            """Do nothing."""
