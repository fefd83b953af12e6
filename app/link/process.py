"""One life of the engine child: start, its pipes, its log, its end.

The child inherits its three pipes and no other file. It leads a session of its own, so that Ctrl+C
in a terminal reaches the app alone. It cannot outlive the app: its stdin ends with the app, Linux
also signals it (the engine asks for that), Windows ends it with the app's Job Object.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from app.link.engine_log import LINE_BYTES, EngineLog
from app.link.outcome import ProcessOutcome

EngineCommand = tuple[str, ...]
PASSED_NAMES: Final = frozenset(
    {
        "APPDATA",
        "ATEN_CPU_CAPABILITY",
        "COMSPEC",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LD_LIBRARY_PATH",
        "LOCALAPPDATA",
        "NUMBER_OF_PROCESSORS",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "TMPDIR",
        "TZ",
        "USERPROFILE",
        "VIRTUAL_ENV",
        "WINDIR",
    }
)
PASSED_PREFIXES: Final = (
    *("CUDA_", "GOMP_", "KMP_", "LC_", "MKL_", "NUMBA_", "NVIDIA_", "OMP_", "ONEDNN_"),
)
log = logging.getLogger(__name__)

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _FLAGS = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW

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
        """Ends the engine and its children when the app is gone, a crash included.

        The system closes the job with the app's last handle and ends everything in it. Raises
        OSError where the system refuses a job.
        """

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
    _FLAGS = 0

    class JobObject:
        """Nothing: here the engine itself sees to its end (its stdin ends; PDEATHSIG on Linux)."""

        def add(self, child: subprocess.Popen[bytes]) -> None:
            """Do nothing."""

        def close(self) -> None:
            """Do nothing."""


def engine_command(data_directory: Path, *more: str) -> EngineCommand:
    """The command that starts our own engine on a data directory."""
    return (sys.executable, "-m", "engine", "--data-directory", str(data_directory), *more)


class EngineProcess:
    """The engine child and its pipes. Owns the process, a thread for its log, on Windows a job.

    ``start``, ``outcome`` and ``close`` belong to the link's thread; ``kill`` may come from any.
    """

    def __init__(
        self,
        command: EngineCommand,
        engine_log: EngineLog,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = command
        self._log = engine_log
        self._environment = engine_environment(os.environ if environment is None else environment)
        self._child: subprocess.Popen[bytes] | None = None
        self._job: JobObject | None = None
        self._pump: threading.Thread | None = None
        self._began = time.monotonic()
        self._fault: str | None = None

    def start(self) -> None:
        """Start the child; raises OSError when the system refuses."""
        self._began = time.monotonic()
        root = Path(__file__).resolve().parents[2]
        self._child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=root,
            env=self._environment,
            close_fds=True,
            start_new_session=True,
            creationflags=_FLAGS,
        )
        self._put_into_job(self._child)
        self._pump = threading.Thread(
            target=self._read_log, args=(self._child.stderr,), name="engine-log", daemon=True
        )
        self._pump.start()

    @property
    def pid(self) -> int:
        """The child's pid, 0 before the start."""
        return 0 if self._child is None else self._child.pid

    @property
    def requests(self) -> IO[bytes]:
        """The pipe to the child."""
        assert self._child is not None and self._child.stdin is not None
        return self._child.stdin

    @property
    def replies(self) -> IO[bytes]:
        """The pipe from the child."""
        assert self._child is not None and self._child.stdout is not None
        return self._child.stdout

    def kill(self, fault: str | None = None) -> None:
        """End the child at once; ``fault`` says in one sentence what was wrong with it."""
        self._fault = self._fault or fault
        if self._child is not None:
            with contextlib.suppress(OSError):
                self._child.kill()

    def end_requests(self) -> None:
        """Close the pipe to the child, which tells it to free everything and exit."""
        with contextlib.suppress(OSError):
            self.requests.close()

    def wait(self, limit_s: float) -> bool:
        """Wait for the child's end; False when it still runs after ``limit_s``."""
        if self._child is None:
            return True
        try:
            self._child.wait(limit_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def outcome(self, *, ready: bool, asked: bool, grace_s: float) -> ProcessOutcome:
        """Reap the child, by force after ``grace_s``, close the pipes and say how it ended."""
        if not self.wait(grace_s):
            self.kill("it did not exit when its pipes were closed." if asked else None)
            self.wait(grace_s)
        lived_s = time.monotonic() - self._began
        self.close()
        code = None if self._child is None else self._child.returncode
        by_signal = code is not None and code < 0
        return ProcessOutcome(
            pid=self.pid,
            exit_code=None if code is None or by_signal else code,
            signal=-code if code is not None and by_signal else None,
            lived_s=lived_s,
            ready=ready,
            asked=asked,
            fault=self._fault,
            log_tail=self._log.tail(),
        )

    def close(self) -> None:
        """End the child if it runs and close everything that this object owns."""
        if self._child is None:
            return
        if self._child.poll() is None:
            self.kill()
            self._child.wait()
        if self._pump is not None:
            self._pump.join(1.0)
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        if self._job is not None:
            self._job.close()
            self._job = None
        self._log.close()

    def _put_into_job(self, child: subprocess.Popen[bytes]) -> None:
        try:
            self._job = JobObject()
            self._job.add(child)
        except OSError as error:
            log.warning("job object refused reason=%s", error)

    def _read_log(self, pipe: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := pipe.readline(LINE_BYTES):
                self._log.write(line)


def engine_environment(own: Mapping[str, str]) -> dict[str, str]:
    """The part of ``own`` that an engine child is started with: an allow-list.

    The engine needs paths, the language, temporary folders and what libraries of mathematics and
    drivers read. It gets no token, no proxy password and nothing else that a person exported.
    """
    kept = {
        name: value
        for name, value in own.items()
        if name.upper() in PASSED_NAMES or name.upper().startswith(PASSED_PREFIXES)
    }
    kept["PYTHONUTF8"] = "1"
    kept["PYTHONNOUSERSITE"] = "1"
    return kept
