"""What a limited child does to itself before it reads anything from a stranger.

It runs in the child, after its own imports: from then on it can open no file or socket, start no
process, and use only so much memory and time. Linux: resource limits and a death signal tied to
the thread that started it. Windows: a job object.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a limited child may take.

    Attributes:
        memory_bytes: address space, the interpreter's own included.
        request_cpu_seconds: for one request, in the kernel's whole seconds, so up to one less;
            the kernel ends the child past it.
        total_cpu_seconds: for its whole life; the engine starts another.
    """

    memory_bytes: int = 512 << 20
    request_cpu_seconds: int = 2
    total_cpu_seconds: int = 120


if sys.platform == "win32":
    from engine.helpers.windows_job import Job, JobLimits, own_process

    def limit_self(limits: Limits, parent: int) -> object:
        """Take the limits on; ``parent`` is watched through the pipe's end alone.

        Returns:
            What must live as long as the process.
        """
        del parent
        job = Job(JobLimits(limits.memory_bytes, 1, limits.total_cpu_seconds))
        job.assign(own_process())
        return job

    def limit_request(limits: Limits) -> None:
        """Nothing to do: the parent's wall clock ends a request that runs on."""
        del limits

else:
    import ctypes
    import resource
    import signal

    _PR_SET_PDEATHSIG = 1
    _PR_SET_NO_NEW_PRIVS = 38
    _STANDARD_STREAMS = 3

    def limit_self(limits: Limits, parent: int) -> object:
        """Take the limits on, and end at once where ``parent`` is no longer the parent.

        Returns:
            What must live as long as the process.
        """
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:
            raise SystemExit(1)
        memory, processor = limits.memory_bytes, limits.total_cpu_seconds
        for kind, most in (
            (resource.RLIMIT_AS, memory),
            (resource.RLIMIT_CPU, processor),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NPROC, 0),
            (resource.RLIMIT_NOFILE, _STANDARD_STREAMS),
        ):
            resource.setrlimit(kind, (most, most))
        return libc

    def limit_request(limits: Limits) -> None:
        """Give the request that begins now its processor time."""
        spent = resource.getrusage(resource.RUSAGE_SELF)
        now = int(spent.ru_utime + spent.ru_stime)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = min(now + limits.request_cpu_seconds, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
