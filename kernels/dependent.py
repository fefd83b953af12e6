"""Launches that may begin while the one before them ends (programmatic dependent launch).

On GPUs of compute capability 9.0 and later a kernel that asks for it is started as soon as every
program of the kernel before has said so, or ended; it then does what needs none of that kernel's
results (addresses, the first weights), and waits. A chain of short kernels loses its gaps.

Every kernel of such a chain waits before it reads or writes anything that another kernel writes or
reads: what was launched earlier has then ended, whatever it was. What a kernel only reads, and no
kernel writes (weights), it may read before.
"""

from functools import cache
from typing import Any, Final

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

LEAST_CAPABILITY: Final = (9, 0)


@triton.jit
def begin(DEPENDENT: tl.constexpr):
    """Let the next kernel start, and wait for the results of all before; a barrier of memory."""
    if DEPENDENT:
        gdc_launch_dependents()
        gdc_wait()


@triton.jit
def let_next_start(DEPENDENT: tl.constexpr):
    """Let the next kernel start; ``wait_for_inputs`` must follow."""
    if DEPENDENT:
        gdc_launch_dependents()


@triton.jit
def wait_for_inputs(DEPENDENT: tl.constexpr):
    """Wait for the results of all kernels before."""
    if DEPENDENT:
        gdc_wait()


def dependent(device: torch.device) -> dict[str, Any]:
    """What a launch on ``device`` is given beside its arguments: the constant and the option."""
    if device.type != "cuda" or not _can(device):
        return {"DEPENDENT": False}
    return {"DEPENDENT": True, "launch_pdl": True}


@cache
def _can(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= LEAST_CAPABILITY
