"""CUDA is chosen only where GPU, driver and lock allow it; else the CPU, with the reason."""

from __future__ import annotations

import pytest

from installer.system.gpu import Gpu, choose, parse_module, parse_smi

MODULE = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:18:29 UTC 2025\n"
    "GCC version:  gcc version 12.2.0\n"
)
OPEN_MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build\n"


def test_nvidia_smi_names_gpu_driver_and_capability() -> None:
    assert parse_smi("NVIDIA H200, 580.65.06, 9.0\nNVIDIA H200, 580.65.06, 9.0\n") == Gpu(
        "NVIDIA H200", 580, 9.0
    )


@pytest.mark.parametrize("output", ["", "No devices were found\n", "NVIDIA, N/A, [N/A]\n"])
def test_what_is_no_gpu_line_is_no_gpu(output: str) -> None:
    assert parse_smi(output) is None


@pytest.mark.parametrize(("text", "driver"), [(MODULE, 580), (OPEN_MODULE, 570)])
def test_the_kernel_module_names_the_driver(text: str, driver: int) -> None:
    assert parse_module(text) == Gpu("NVIDIA GPU", driver, None)


def test_a_file_that_names_no_driver_is_no_gpu() -> None:
    assert parse_module("nothing of the kind") is None


@pytest.mark.parametrize(
    ("gpu", "locked", "backend", "said"),
    [
        (None, True, "cpu", "No NVIDIA GPU"),
        (Gpu("A", 535, 8.6), True, "cpu", "driver 535 found, 580 or newer needed"),
        (Gpu("A", 580, 6.1), True, "cpu", "capability 6.1 found, 7.5 or newer needed"),
        (Gpu("A", 580, 8.6), False, "cpu", "the lock has no CUDA build"),
        (Gpu("A", 580, 7.5), True, "cuda", "CUDA build"),
        (Gpu("A", 595, None), True, "cuda", "CUDA build"),
    ],
)
def test_the_build_fits_the_machine(gpu: Gpu | None, locked: bool, backend: str, said: str) -> None:
    choice = choose(gpu, cuda_locked=locked)
    assert choice.backend == backend
    assert said in choice.reason
