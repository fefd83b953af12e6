"""What a plan counts is never less than what an executor reserves."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import TensorFacts
from engine.forward.products import linears
from engine.loading.footprint import footprint
from engine.models import model_spec
from engine.native import StoredWeights, native_sizes
from kernels.cpu.library import Library, Pool
from kernels.cpu.records import GROUP
from kernels.quant.facts import FACTS
from tests.helpers.memory_source import MemorySource, tiny_source
from tests.helpers.models import gemma_path, smol_path


def wide_source() -> MemorySource:
    """A llama whose widths the native library takes."""
    hidden, inner, query, kv = 96, 160, 128, 64
    shapes = {"token_embd": (53, hidden), "output_norm": (hidden,)}
    for layer in range(2):
        parts = {
            "attn_norm": (hidden,), "attn_q": (query, hidden), "attn_k": (kv, hidden),
            "attn_v": (kv, hidden), "attn_output": (hidden, query), "ffn_norm": (hidden,),
            "ffn_gate": (inner, hidden), "ffn_up": (inner, hidden), "ffn_down": (hidden, inner),
        }  # fmt: skip
        shapes |= {f"blk.{layer}.{part}": shape for part, shape in parts.items()}
    arrays = {f"{name}.weight": np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return tiny_source(
        "llama",
        arrays=arrays,
        embedding_length=hidden,
        feed_forward_length=inner,
        attention__head_count=4,
        attention__head_count_kv=2,
        attention__key_length=32,
    )


def stored_as(source: MemorySource, format_name: str, group: int, scales: str) -> MemorySource:
    """The same checkpoint with its matrices in a format whose scales lie apart."""
    for name, facts in source.tensors.items():
        if len(facts.shape) == 2:
            rows, columns = facts.shape
            apart = TensorFacts(
                f"{name}.scales", (rows, columns // group), scales, 0, 0,
                FACTS[scales].row_bytes(rows * columns // group),
            )  # fmt: skip
            source.tensors[name] = replace(
                facts,
                format=format_name,
                size_bytes=rows * FACTS[format_name].row_bytes(columns),
                scales=apart,
                minima=replace(apart, name=f"{name}.biases"),
                block=(1, group),
            )
    return source


@pytest.mark.parametrize("path", [smol_path, gemma_path])
@pytest.mark.parametrize("context", [300, 8192])
def test_the_real_models_reserve_no_more_than_is_planned(path: object, context: int) -> None:
    assert callable(path)
    with open_checkpoint(path()) as source, Pool(Library(), 2) as pool:
        spec = model_spec(source)
        taken = footprint(source, spec, wide=False)
        weights = StoredWeights(source, Library(), pool)
        products = linears(spec)
        used = weights.arena_bytes(products) + weights.copied_bytes(products)
        assert (
            used
            <= taken.weight_bytes
            <= 1.03 * sum(facts.stored_bytes for facts in source.tensors.values())
        )
        assert native_sizes(spec, context, 4, pool).total_bytes <= (
            taken.workspace(context, 4, 256) + taken.logits(4)
        )


@pytest.mark.parametrize("scales", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("format_name", ["mlx2", "mlx3", "mlx4", "mlx5", "mlx6", "mlx8"])
def test_packed_weights_reserve_no_more_than_is_planned(format_name: str, scales: str) -> None:
    source = stored_as(wide_source(), format_name, GROUP, scales)
    spec = model_spec(source)
    taken = footprint(source, spec, wide=False)
    with Pool(Library(), 1) as pool:
        weights = StoredWeights(source, Library(), pool)
        used = weights.arena_bytes(linears(spec)) + weights.copied_bytes(linears(spec))
    assert 0 < used <= taken.weight_bytes
    decoded = footprint(source, spec, wide=True).weight_bytes
    assert taken.weight_bytes < decoded / 2


def test_a_model_that_no_native_code_runs_is_planned_decoded() -> None:
    odd, wide = tiny_source("llama"), wide_source()
    planned = footprint(odd, model_spec(odd), wide=False)
    elements = sum(int(np.prod(facts.shape)) for facts in odd.tensors.values())
    assert planned.weight_bytes == 4 * elements
    assert "no multiple of 32" in planned.weights
    assert "as it was asked for" in footprint(wide, model_spec(wide), wide=True).weights
    assert "laid out" in footprint(wide, model_spec(wide), wide=False).weights


def test_a_plan_of_a_file_imports_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from engine.config import EngineConfig\n"
        "from engine.loading.loader import CheckpointLoader\n"
        "from engine.memory.ledger import Ledger\n"
        "from engine.protocol import Plan\n"
        "loader = CheckpointLoader(EngineConfig(data_directory=Path(sys.argv[2])), "
        "Ledger({'ram': 0}))\n"
        "assert loader.plan(Plan(request=1, path=sys.argv[1])).lines\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, smol_path(), tmp_path], check=True)
