"""Lists of models: what a checkpoint takes is told from its header, however large it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.loading.inspection import inspect_checkpoint
from engine.loading.reads import model_elements, products, step_reads
from engine.models import model_spec
from engine.models.spec import Linear
from tests.helpers.memory_source import tiny_source
from tests.helpers.models import gemma_path, smol_path
from tests.helpers.tiny_gguf import write_script
from tests.helpers.tiny_safetensors import CONFIG, llama_tensors, write_folder

HIDDEN, INNER, LAYERS, VOCABULARY = 8192, 28672, 24, 150_000


def write_sparse(path: Path) -> int:
    """A llama of 20 GB without a byte of weights; returns its parameters."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("large")
    writer.add_block_count(LAYERS)
    writer.add_context_length(131_072)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(64)
    writer.add_head_count_kv(8)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"token {number}" for number in range(VOCABULARY)])
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (VOCABULARY, HIDDEN),
        "output_norm.weight": (HIDDEN,),
        "output.weight": (VOCABULARY, HIDDEN),
    }
    for layer in range(LAYERS):
        parts: dict[str, tuple[int, ...]] = {
            "attn_norm": (HIDDEN,),
            "attn_q": (HIDDEN, HIDDEN),
            "attn_k": (1024, HIDDEN),
            "attn_v": (1024, HIDDEN),
            "attn_output": (HIDDEN, HIDDEN),
            "ffn_norm": (HIDDEN,),
            "ffn_gate": (INNER, HIDDEN),
            "ffn_up": (INNER, HIDDEN),
            "ffn_down": (HIDDEN, INNER),
        }
        shapes |= {f"blk.{layer}.{part}.weight": shape for part, shape in parts.items()}
    size = 0
    for name, shape in shapes.items():
        if len(shape) == 1:
            each = 4 * shape[0]
            writer.add_tensor_info(name, shape, np.dtype(np.float32), each)
        else:
            each = shape[0] * shape[1] // 32 * 34
            row = (shape[0], shape[1] // 32 * 34)
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor_info(name, row, np.dtype(np.uint8), each, raw_dtype=kind)
        size += each
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as stream:
        stream.truncate(-(-path.stat().st_size // 32) * 32 + size)
    return int(sum(np.prod(shape) for shape in shapes.values()))


def test_a_file_of_20_gb_is_told_in_less_than_a_second_and_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    parameters = write_sparse(path)
    assert path.stat().st_size > 20e9
    code = (
        "import sys, time\n"
        "from engine.loading.inspection import inspect_checkpoint\n"
        "found = inspect_checkpoint(sys.argv[1])\n"
        "assert found.problem is None and 'torch' not in sys.modules, found\n"
        "print(found.parameters, found.step_bytes, found.kv_token_bytes, time.process_time())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, path], check=True, capture_output=True, text=True
    )
    found, step_bytes, kv, seconds = ran.stdout.split()
    assert (int(found), int(kv)) == (parameters, LAYERS * 2 * 1024 * 2)
    norms = (2 * LAYERS + 1) * HIDDEN
    assert int(step_bytes) == (parameters - VOCABULARY * HIDDEN - norms) * 34 // 32 + 4 * norms
    assert float(seconds) < 1.0


def test_the_real_models_are_told_as_their_makers_tell_them() -> None:
    smol, gemma = inspect_checkpoint(str(smol_path())), inspect_checkpoint(str(gemma_path()))
    assert (smol.family, smol.parameters, smol.kv_token_bytes) == ("llama", 134_515_008, 23_040)
    assert (gemma.family, gemma.parameters) == ("gemma3", 268_098_176)
    sizes = gemma.kv_token_bytes, gemma.sliding_token_bytes, gemma.sliding_bytes
    assert sizes == (3 << 10, 15 << 10, 15 << 19)
    for found in (smol, gemma):
        assert found.recurrent_bytes == 0
        assert not found.has_vision
        assert sum(found.format_bytes.values()) <= found.file_bytes
        # The head is tied: all that the tables hold is read for a token.
        assert found.step_bytes == sum(found.format_bytes.values())


def test_an_untied_embedding_is_not_read_and_a_product_s_rows_count_once() -> None:
    source = tiny_source("llama")
    spec = model_spec(source)
    whole = sum(int(np.prod(facts.shape)) for facts in source.tensors.values())
    assert step_reads(spec, source.tensors).element_count == whole
    assert model_elements(spec, source.tensors) == whole
    assert len(products(spec)) == len({linear.weight for linear in products(spec)})
    untied = tiny_source("llama", arrays={"output.weight": np.zeros((53, 24), np.float32)})
    spec = model_spec(untied)
    assert step_reads(spec, untied.tensors).element_count == whole
    assert model_elements(spec, untied.tensors) == whole + 53 * 24
    assert Linear("output.weight") in products(spec)


def test_a_folder_with_picture_tensors_sees(tmp_path: Path) -> None:
    blind = write_folder(tmp_path / "blind", CONFIG, llama_tensors())
    tensors = llama_tensors() | {"vision_tower.w": np.ones((3, 3), np.float32)}
    seeing = write_folder(tmp_path / "seeing", CONFIG, tensors)
    assert not inspect_checkpoint(str(blind)).has_vision
    found = inspect_checkpoint(str(seeing))
    assert found.has_vision
    assert (found.family, found.kv_token_bytes) == ("llama", 2 * 2 * 10 * 2)
    assert found.format_bytes == {"F32": 4 * found.parameters}
    assert found.step_bytes == 4 * (found.parameters - 9)


@pytest.mark.parametrize(
    ("architecture", "sees", "width", "wanted"),
    [
        ("clip", True, 64, True),
        ("clip", True, 128, False),
        ("clip", False, 64, False),
        ("llama", True, 64, False),
    ],
)
def test_a_picture_file_beside_a_gguf_counts_where_it_fits(
    tmp_path: Path, architecture: str, sees: bool, width: int, wanted: bool
) -> None:
    model = tmp_path / "model.gguf"
    write_script(model, ["a"])
    writer = gguf.GGUFWriter(tmp_path / "mmproj-model-f16.gguf", architecture)
    writer.add_bool("clip.has_vision_encoder", sees)
    writer.add_uint32("clip.vision.projection_dim", width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert inspect_checkpoint(str(model)).has_vision is wanted


def test_a_picture_file_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    write_script(model, ["a"])
    (tmp_path / "mmproj.gguf").write_bytes(b"GGUF\x03")
    found = inspect_checkpoint(str(model))
    assert not found.has_vision
    assert found.problem is None


def test_what_cannot_run_keeps_its_sentence_and_what_its_header_tells(tmp_path: Path) -> None:
    config = CONFIG | {"model_type": "qwen4_exp"}
    found = inspect_checkpoint(str(write_folder(tmp_path / "next", config, llama_tensors())))
    assert found.problem is not None
    assert "qwen4_exp" in found.problem
    assert (found.architecture, found.family) == ("qwen4_exp", "")
    assert (found.parameters > 0, found.step_bytes) == (True, 0)
    broken = write_folder(tmp_path / "broken", CONFIG | {"hidden_size": 25}, llama_tensors())
    assert "shape" in (inspect_checkpoint(str(broken)).problem or "")
