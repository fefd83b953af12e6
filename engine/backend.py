"""The backend: decides what computes a model on this machine, and builds it.

On a GPU those are Triton's kernels, imported only there. On the CPU that is the native library.
``compute=float32``, a processor without AVX2 or a model of odd widths takes torch instead, and the
log says so.
"""

from __future__ import annotations

import importlib
import logging
import math

import torch

from engine.config import Compute
from engine.device import device_facts
from engine.forward import DequantizedProducts, TorchRunner, Weights
from engine.forward.products import linears
from engine.gpu.cards.guarded import GuardedRunner, device_trouble
from engine.memory.pools import RAM
from engine.native import NativeRunner, StoredWeights, native_sizes, unsupported_by_native
from engine.runner import GpuPlace, Runner, RunnerParts
from kernels.cpu.library import Library, LibraryUnavailable, Pool

WEIGHTS = "weights"
WORKSPACE = "workspace"
REPORTS = 200
"""Times that progress is told while weights are laid out."""

_LOG = logging.getLogger(__name__)


def build_runner(parts: RunnerParts) -> Runner:
    """Build the runner that the configuration and this machine ask for.

    Raises:
        MemoryRefused: weights or scratch do not fit.
    """
    if parts.gpu is not None:
        torch.set_num_threads(1)
        return _gpu_runner(parts, parts.gpu)
    library = _library(parts)
    threads = device_facts(parts.config.threads).threads
    if library is None:
        torch.set_num_threads(threads)
        return _torch_runner(parts)
    # The native pool does the work; torch's own threads would only spin beside it.
    torch.set_num_threads(1)
    return _native_runner(parts, library, threads)


def _gpu_runner(parts: RunnerParts, place: GpuPlace) -> Runner:
    # Triton is not installed everywhere, and costs a second to import.
    build = importlib.import_module("engine.gpu.build").build_gpu_runner
    with device_trouble():
        return GuardedRunner(build(parts, place.device, place.pool, place.chunk_rows))


def _library(parts: RunnerParts) -> Library | None:
    if parts.config.compute is Compute.FLOAT32:
        return None
    reason = unsupported_by_native(parts.spec)
    if reason is None:
        try:
            return Library()
        except LibraryUnavailable as error:
            reason = str(error)
    _LOG.warning("native library not used reason=%r", reason)
    return None


def _native_runner(parts: RunnerParts, library: Library, threads: int) -> Runner:
    spec, source, stack = parts.spec, parts.source, parts.resources
    products = linears(spec)
    pool = stack.enter_context(Pool(library, threads))
    weights = StoredWeights(source, library, pool)
    size = weights.arena_bytes(products) + weights.copied_bytes(products)
    sizes = native_sizes(spec, parts.context_tokens, parts.streams, pool)
    laid_out = parts.ledger.reserve(WEIGHTS, {RAM: size})
    stack.callback(laid_out.release, weights.close)
    workspace = stack.enter_context(parts.ledger.reserve(WORKSPACE, {RAM: sizes.total_bytes}))
    done, said, total = 0, 0, weights.stored_bytes(products)
    for part in weights.lay_out(products):
        done += part
        if done >= min(said + total // REPORTS, total):  # a mixture has tens of thousands of parts
            said = done
            parts.progress(done, total)
    runner = NativeRunner(spec, weights, parts.kv, pool, sizes, recurrent=parts.recurrent)
    laid_out.commit()
    workspace.commit()
    _LOG.info("native runner built isa=%s threads=%d bytes=%d", pool.isa.name, threads, size)
    if (decoded := weights.decoded_bytes(products)) > 0:
        _LOG.info("weights kept as float32 bytes=%d, their format has no native product", decoded)
    return runner


def _torch_runner(parts: RunnerParts) -> Runner:
    shapes = {linear.weight: None for linear in linears(parts.spec)}
    tensors = [parts.source.tensors[name] for name in shapes]
    size = sum(4 * math.prod(facts.shape) for facts in tensors)
    lease = parts.ledger.reserve(WEIGHTS, {RAM: size})
    parts.resources.enter_context(lease)
    weights, done = Weights(parts.source), 0

    def made(decoded_bytes: int) -> None:
        nonlocal done
        done += decoded_bytes
        parts.progress(min(done, size), size)

    products = DequantizedProducts(parts.spec, weights, made)
    parts.resources.callback(lease.release, products.close)
    lease.commit()
    parts.progress(size, size)
    return TorchRunner(parts.spec, weights, products, parts.kv, parts.recurrent)
