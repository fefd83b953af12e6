"""Every launch that checks and benches make, recorded without a GPU and without a number computed.

Tensors have shapes and strides, no memory, and say that they lie on a GPU. What would read a number
out of one gets 0, and the process runs with ``-O``, so that no check fails.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.fx.experimental._config
from torch._C import DisableTorchFunction
from torch.overrides import TorchFunctionMode
from triton.compiler import make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature

from kernels.device import SHARED_BYTES
from tests.helpers.gpu_compile import Launch, target

FOLDER = Path(__file__).resolve().parent / "gpu"
MOST_S = 0.2
"""What one check may take: numbers are not computed, but loops over rows still run.

Launches come early: as many were recorded within 0.15 as within 0.5.
"""
DEVICE = torch.device("cuda", 0)


class Address:
    """Stands for a tensor where a kernel's arguments are looked at: its dtype and alignment."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.dtype = tensor.dtype
        self.shape = tensor.shape
        self.device = DEVICE
        self._first = int(tensor.storage_offset()) * tensor.element_size()
        self._strides = tensor.stride()

    def data_ptr(self) -> int:
        """As if its storage began at 0."""
        return self._first

    def stride(self) -> tuple[int, ...]:
        """Of the tensor."""
        return self._strides


class Recorder:
    """Takes the place of running a kernel."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self.launches: dict[tuple[str, frozenset[str]], Launch] = {}
        self._backend = make_backend(target(capability))

    def run(self, kernel: JITFunction[Any], *args: Any, grid: Any, warmup: bool, **kw: Any) -> None:
        """Keep how ``kernel`` is called; a second call of the same kind adds nothing."""
        del warmup
        kw = {key: plain(value) for key, value in kw.items()}
        kw |= {"debug": False, "instrumentation_mode": ""}
        binder = create_function_from_signature(kernel.signature, kernel.params, self._backend)
        bound, special, options = binder(*(plain(each) for each in args), **kw)
        options, signature, constexprs, attributes = kernel._pack_args(
            self._backend, kw, bound, special, options
        )
        if callable(grid):
            grid(bound)
        launch = Launch(kernel, signature, constexprs, attributes, dict(options.__dict__))
        self.launches.setdefault((launch.name, launch.traits), launch)


def plain(value: Any) -> Any:
    """A kernel's argument as the compiler looks at it."""
    return Address(value) if isinstance(value, torch.Tensor) else value


def modules() -> list[str]:
    """The helpers that check or time kernels."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def recorded(capability: tuple[int, int], *, benches: bool) -> tuple[list[Launch], list[str]]:
    """Launches of every check on a GPU of ``capability``, and what went wrong there.

    Args:
        benches: theirs, too; they try what only a GPU as large as an H200 has room for.
    """
    recorder, problems = Recorder(capability), []
    with pretended(capability, recorder) as shapes:
        import_operators()
        for name in modules():
            if name.startswith("bench_") and not benches:
                continue
            helper = importlib.import_module(f"tests.helpers.gpu.{name}")
            for what, call in calls(name, helper):
                try:
                    shapes.ends = time.process_time() + MOST_S
                    call()
                except CutShort:
                    continue
                except Exception as error:  # noqa: BLE001 - told, and the others go on
                    problems.append(f"{what}: {type(error).__name__}: {str(error)[:300]}")
                finally:
                    shapes.ends = float("inf")
    return list(recorder.launches.values()), problems


def import_operators() -> None:
    """Have torch import what it imports late, before anything may be cut short in the middle."""
    importlib.import_module("torch.fx.experimental.symbolic_shapes")
    importlib.import_module("torch._refs")
    one = torch.randn(2, 2) * 2
    (one.view(torch.int32) >> 1).double().sum(-1, keepdim=True).repeat_interleave(2)
    torch.cat((one, one @ one)).softmax(-1)[[0, 3]][:, one[0] > 0]


class CutShort(BaseException):
    """A reference computes for too long; what was launched before it is recorded."""


def calls(name: str, helper: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """What to call so that a helper launches all that it does."""
    if hasattr(helper, "check"):
        found = getattr(helper, "CASES", None)
        for case in found or importlib.import_module(f"kernels.{name}.cases").CASES:
            yield f"{name} {case}", partial(helper.check, case, DEVICE)
    if hasattr(helper, "benches"):
        for label, call, _, _ in helper.benches():
            yield f"{name} {label}", call


class SilentGenerator(torch.Generator):
    """Of the CPU, whichever device was asked for: nothing draws from it."""

    def __new__(cls, *_: object, **__: object) -> SilentGenerator:
        """Ask for none on a GPU."""
        return super().__new__(cls)


@contextmanager
def pretended(capability: tuple[int, int], recorder: Recorder) -> Iterator[Shapes]:
    """A GPU of that capability seems to be there, and kernels are recorded."""

    def run(kernel: JITFunction[Any], *args: Any, **kw: Any) -> None:
        recorder.run(kernel, *args, **kw)

    facts = SimpleNamespace(
        name="pretended", major=capability[0], minor=capability[1], multi_processor_count=132,
        shared_memory_per_block_optin=SHARED_BYTES[capability], total_memory=1 << 37,
    )  # fmt: skip
    fakes: list[tuple[Any, str, Any]] = [
        (JITFunction, "run", run),
        (torch, "Generator", SilentGenerator),
        (torch.fx.experimental._config, "meta_nonzero_assume_all_nonzero", True),
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "synchronize", lambda *_: None),
        (torch.cuda, "empty_cache", lambda: None),
        (torch.cuda, "get_device_properties", lambda *_: facts),
        (torch.cuda, "get_device_capability", lambda *_: capability),
    ]
    with ExitStack() as stack:
        for owner, name, new in fakes:
            stack.enter_context(mock.patch.object(owner, name, new))
        yield stack.enter_context(Shapes())


class Shapes(TorchFunctionMode):
    """Every new tensor has a shape and no memory, and says that it lies on a GPU.

    Attributes:
        ends: the process's own time after which the next operation raises ``CutShort``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ends = float("inf")

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        if time.process_time() > self.ends:
            raise CutShort
        if func in ANSWERS:
            return ANSWERS[func](*args, **(kwargs or {}))
        kwargs = {key: on_meta(value) for key, value in (kwargs or {}).items()}
        if func in FACTORIES:
            kwargs = kwargs | {"device": "meta"}
        kwargs.pop("generator", None)
        kwargs.pop("pin_memory", None)
        return func(*(on_meta(each) for each in args), **kwargs)


def on_meta(value: Any) -> Any:
    """Devices, and tensors that have memory, moved to where there is none."""
    if isinstance(value, torch.device) or (isinstance(value, str) and value[:4] in ("cuda", "cpu")):
        return torch.device("meta")
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(on_meta(each) for each in value)
    if isinstance(value, torch.Tensor):
        with DisableTorchFunction():
            return value if value.is_meta else value.to("meta")
    return value


def zeros(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """What is read out of a tensor that has no numbers."""
    with DisableTorchFunction():
        kind = str(tensor.dtype).removeprefix("torch.")
        return np.zeros(tuple(tensor.shape), "float32" if kind == "bfloat16" else kind)


def getter(name: str) -> Any:
    """What reads a property of tensors."""
    return vars(torch._C.TensorBase)[name].__get__


ANSWERS: dict[Any, Callable[..., Any]] = {
    getter("device"): lambda *_: DEVICE,
    getter("is_cuda"): lambda *_: True,
    getter("is_cpu"): lambda *_: False,
    getter("is_meta"): lambda *_: False,
    torch.Tensor.cpu: lambda tensor, *_, **__: tensor,
    torch.Tensor.cuda: lambda tensor, *_, **__: tensor,
    torch.Tensor.item: lambda *_, **__: 0,
    torch.Tensor.__bool__: lambda *_: True,
    torch.Tensor.__int__: lambda *_, **__: 0,
    torch.Tensor.__index__: lambda *_, **__: 0,
    torch.Tensor.__float__: lambda *_: 0.0,
    torch.Tensor.tolist: lambda tensor: zeros(tensor).tolist(),
    torch.Tensor.numpy: zeros,
    torch.Tensor.data_ptr: lambda *_, **__: 0,
    torch.bincount: lambda _, minlength=0: torch.empty(minlength, dtype=torch.int64, device="meta"),
    torch.equal: lambda *_: True,
    torch.allclose: lambda *_, **__: True,
    torch.testing.assert_close: lambda *_, **__: None,
}
FACTORIES = {
    torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.randint,
    torch.arange, torch.linspace, torch.tensor, torch.eye, torch.randperm, torch.empty_strided,
    torch.scalar_tensor, torch.as_tensor,
}  # fmt: skip
