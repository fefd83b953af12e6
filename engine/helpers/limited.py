"""A short-lived limited child process: strangers' data are worked on there, not in the engine.

The child is ``module.main()`` in a fresh interpreter that sees no environment, no folder of the
user's and none of the engine's pipes or files; it limits itself (``engine.helpers.limits``) and
then answers one request after another over its own two pipes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from engine.errors import EngineError
from engine.helpers.pipe import FRAME_LIMIT, read_frame, write_frame
from engine.helpers.windows_job import end_with_us
from engine.owner import Owner

_ROOT: Final = Path(__file__).resolve().parents[2]
_BOOT: Final = (
    "import sys, importlib; sys.path.append(sys.argv[1]);"
    " importlib.import_module(sys.argv[2]).main(int(sys.argv[3]))"
)
_FLAGS: Final = ("-I", "-W", "ignore", "-c")
_START_SECONDS: Final = 20.0
if sys.platform == "win32":
    _CREATION_FLAGS = subprocess.CREATE_NO_WINDOW
else:
    _CREATION_FLAGS = 0


class LimitedChild(Owner):
    """Owner of one child process, started when first needed and again when it was ended.

    Used from one thread at a time. On Linux the child also ends with the thread that started it.

    Args:
        module: what the child runs; has ``main(parent: int)``, sends an empty frame when it is
            ready and then answers each frame with one frame.
        subject: what is worked on, as the subject of an error's sentence.
        failure: raised where the child gives no answer.
        wall_seconds: for one request.
    """

    def __init__(
        self, module: str, *, subject: str, failure: type[EngineError], wall_seconds: float = 2.0
    ) -> None:
        self._module = module
        self._subject = subject
        self._failure = failure
        self._wall_seconds = wall_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False
        self._untie: Callable[[], None] | None = None

    def start(self) -> None:
        """Start the child without waiting for it, so that the first answer comes sooner."""
        if self._process is not None and self._process.poll() is None:
            return
        self._end()
        self._process = subprocess.Popen(
            [sys.executable, *_FLAGS, _BOOT, str(_ROOT), self._module, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT.anchor,
            env=_environment(),
            creationflags=_CREATION_FLAGS,
        )
        self._untie = end_with_us(self._process.pid)

    def ask(self, payload: bytes) -> bytes:
        """Send one request and wait for its answer.

        Raises:
            EngineError: of the class given as ``failure``; the child is ended, the next request
                gets a fresh one.
        """
        if len(payload) > FRAME_LIMIT:
            raise self._failure(f"{self._subject} is given {len(payload)} bytes, too many at once.")
        self.start()
        if not self._ready:
            self._exchange(None, _START_SECONDS)
            self._ready = True
        return self._exchange(payload, self._wall_seconds)

    def close(self) -> None:
        """End the child."""
        self._end()

    def _exchange(self, payload: bytes | None, seconds: float) -> bytes:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        late = threading.Event()
        clock = threading.Timer(seconds, _stop, (process, late))
        clock.start()
        answer: bytes | None = None
        try:
            if payload is not None:
                write_frame(process.stdin, payload)
            answer = read_frame(process.stdout)
        except OSError:
            answer = None
        finally:
            clock.cancel()
            clock.join()
        if answer is not None and not late.is_set():
            return answer
        self._end()
        if late.is_set():
            raise self._failure(f"{self._subject} took longer than {seconds:g} s and was stopped.")
        raise self._failure(f"{self._subject} passed its limits of memory or time and was stopped.")

    def _end(self) -> None:
        process, self._process, self._ready = self._process, None, False
        if self._untie is not None:
            self._untie()
            self._untie = None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            try:
                stream.close()
            except OSError:
                continue  # what was left to flush has no reader any more
        process.wait()


def _stop(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _environment() -> dict[str, str]:
    """Nothing of the user's; Windows cannot start Python without its system folder."""
    if sys.platform == "win32":
        return {"SystemRoot": os.environ["SYSTEMROOT"]}
    return {}
