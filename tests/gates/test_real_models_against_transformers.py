"""The two small real models, dequantized, give the logits of transformers in float32.

Measured over the last 44 rows: SmolLM2 5.8e-7 of 300 rows, Gemma 3 270M 3.5e-6 of 556 (past its
window of 512); every argmax equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM
from transformers.initialization import no_init_weights

from engine.checkpoint.open import open_checkpoint
from engine.forward import Weights
from engine.models import model_spec
from engine.models.spec import RopeStyle
from tests.helpers.lone_model import LoneModel, relative_l2
from tests.helpers.models import gemma_path, smol_path
from tests.helpers.tiny_models import GEMMA_NAMES, LLAMA_NAMES, random_ids

COMPARED_ROWS = 44


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def smol_reference() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0},
        tie_word_embeddings=True,
        max_position_embeddings=8192,
    )
    with no_init_weights():
        return LlamaForCausalLM(config)


def gemma_reference() -> Gemma3ForCausalLM:
    config = Gemma3TextConfig(
        vocab_size=262144,
        hidden_size=640,
        intermediate_size=2048,
        num_hidden_layers=18,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=256,
        query_pre_attn_scalar=256,
        sliding_window=512,
    )
    with no_init_weights():
        return Gemma3ForCausalLM(config)


def load_dequantized(model: LlamaForCausalLM | Gemma3ForCausalLM, path: Path) -> None:
    """Give the reference the file's weights in float32, with the conversion's rules undone."""
    llama = isinstance(model, LlamaForCausalLM)
    names = {new: old for old, new in (LLAMA_NAMES if llama else GEMMA_NAMES).items()}
    state = model.state_dict()
    with open_checkpoint(path) as source:
        weights = Weights(source)
        for name in source.tensors:
            value = weights.whole(name)
            stem = name.removesuffix(".weight")
            if stem in ("token_embd", "output_norm"):
                target = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}[stem]
            else:
                _, layer, part = stem.split(".")
                target = f"model.layers.{layer}.{names[part]}"
                if llama and part in ("attn_q", "attn_k"):
                    heads = value.view(-1, 32, 2, value.shape[1])
                    value = heads.transpose(1, 2).reshape(value.shape)
            if not llama and "norm" in stem:
                value = value - 1.0
            state[f"{target}.weight"].copy_(value)


@pytest.mark.parametrize(("family", "rows"), [("llama", 300), ("gemma3", 556)])
@torch.inference_mode()
def test_a_dequantized_real_model_gives_the_logits_of_transformers(family: str, rows: int) -> None:
    path = smol_path() if family == "llama" else gemma_path()
    reference = smol_reference() if family == "llama" else gemma_reference()
    reference.tie_weights()
    load_dequantized(reference, path)
    nn.Module.eval(reference)
    ids = random_ids(rows, reference.config.vocab_size)
    wanted = reference(input_ids=torch.tensor([ids]), logits_to_keep=COMPARED_ROWS).logits[0]
    with LoneModel(path, rows) as model:
        model.prompt(ids[: rows - COMPARED_ROWS])
        model.lane.extend(COMPARED_ROWS)
        found = model.runner.all_logits(
            model.lane, ids[rows - COMPARED_ROWS :], rows - COMPARED_ROWS
        )
    assert relative_l2(found, wanted) <= 1e-5
    assert torch.equal(found.argmax(-1), wanted.argmax(-1))


def test_the_real_files_read_as_they_are_known_to_be() -> None:
    """Facts of the model cards, not of our reader."""
    with open_checkpoint(smol_path()) as source, open_checkpoint(gemma_path()) as other:
        smol, gemma = model_spec(source), model_spec(other)
    assert (smol.hidden, len(smol.layers), smol.vocabulary) == (576, 30, 49152)
    assert smol.attentions[0].rope is not None
    assert smol.attentions[0].rope.style is RopeStyle.PAIRS
    assert len(smol.attentions[0].rope.frequencies) == 32
    full = [i for i, layer in enumerate(gemma.attentions) if layer.window is None]
    assert full == [5, 11, 17]
    assert gemma.attentions[0].window == 512
    assert gemma.attentions[0].scale == 1 / 16
    assert math.isclose(gemma.embedding_scale, 640**0.5)
    assert smol.notes == gemma.notes == ()
