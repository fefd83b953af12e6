"""Compiles launches of Triton kernels for any GPU, without one.

``compiled`` turns one recorded launch into machine code with the compiler that Triton carries, and
says what that code needs. Only in a process that does not run kernels in the interpreter.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

TARGETS: Final = ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))
"""Capabilities that every kernel compiles for."""

HOME: Final = (9, 0)
"""The one whose launches were chosen by measurement, and are compiled in more forms."""

MATRIX: Final = re.compile(r"\b(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)")
USAGE: Final = re.compile(r"REG:(\d+) STACK:(\d+)")


@dataclass(frozen=True, slots=True)
class Launch:
    """One way of calling one kernel, as Triton's compiler is asked for it."""

    kernel: JITFunction[Any]
    signature: dict[str, Any]
    constexprs: dict[Any, Any]
    attributes: dict[Any, Any]
    options: dict[str, Any]

    @property
    def name(self) -> str:
        """Operation and kernel, such as ``norm.norm_step_kernel``."""
        operation = self.kernel.module.removeprefix("kernels.").removesuffix(".kernel")
        return f"{operation}.{self.kernel.fn.__qualname__}"

    @property
    def traits(self) -> frozenset[str]:
        """What tells it from other launches of its kernel, save for divisible numbers."""
        options = {key: self.options.get(key) for key in ("num_warps", "num_stages")}
        names = self.kernel.arg_names
        constexprs = {names[path[0]]: value for path, value in self.constexprs.items()}
        parts = {**self.signature, **constexprs, **options}
        return frozenset(f"{key}={value}" for key, value in parts.items())


@dataclass(frozen=True, slots=True)
class Machine:
    """What one launch's code is like.

    Attributes:
        shared_bytes: shared memory of one program.
        registers: of one thread.
        stack_bytes: of one thread; what does not fit into registers lies there.
        matrix: whether it has matrix instructions.
        dp4a: whether it has products of four bytes.
    """

    shared_bytes: int
    registers: int
    stack_bytes: int
    matrix: bool
    dp4a: bool
    ptx: str = field(repr=False)


def target(capability: tuple[int, int]) -> GPUTarget:
    """As Triton names a GPU."""
    return GPUTarget("cuda", 10 * capability[0] + capability[1], 32)


def compiled(launch: Launch, capability: tuple[int, int]) -> Machine:
    """Compile one launch; whatever the compiler raises goes to the caller."""
    source = ASTSource(launch.kernel, launch.signature, launch.constexprs, launch.attributes)
    found = triton.compile(source, target=target(capability), options=dict(launch.options))
    registers, stack = usage(found.asm["cubin"])
    ptx = found.asm["ptx"]
    return Machine(
        shared_bytes=found.metadata.shared,
        registers=registers,
        stack_bytes=stack,
        matrix=MATRIX.search(ptx) is not None,
        dp4a="dp4a." in ptx,
        ptx=ptx,
    )


def usage(code: bytes) -> tuple[int, int]:
    """Registers and stack bytes of a thread, as NVIDIA's own tool reads them out of the code."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with TemporaryDirectory() as folder:
        file = Path(folder, "code.cubin")
        file.write_bytes(code)
        said = subprocess.run(
            [str(tool), "--dump-resource-usage", str(file)],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    found = USAGE.search(said)
    if found is None:
        raise ValueError(f"cuobjdump said nothing of registers: {said[-300:]}")
    return int(found[1]), int(found[2])
