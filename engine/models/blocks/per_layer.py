"""Per-layer inputs: an embedding of its own for each layer, mixed into that layer's end.

No torch here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from engine.models.layers import Body
from engine.models.spec import Activation, PerLayerInputs, PerLayerSpec
from engine.models.tensors import TensorNames

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "per_layer_token_embd": "embed_tokens_per_layer",
        "per_layer_model_proj": "per_layer_model_projection",
        "per_layer_proj_norm": "per_layer_projection_norm",
        "blk.*.inp_gate": "layers.*.per_layer_input_gate",
        "blk.*.proj": "layers.*.per_layer_projection",
        "blk.*.post_norm": "layers.*.post_per_layer_input_norm",
    }
)


def per_layer_inputs(tensors: TensorNames, body: Body, width: int) -> PerLayerInputs:
    """What makes the inputs of all layers, ``width`` numbers for each."""
    both = body.layer_count * width
    embedding = "per_layer_token_embd.weight"
    # A file may have cut the rows of the main embedding alone to the tokenizer's.
    rows = max(tensors.shape(embedding, 2)[0], body.vocabulary)
    return PerLayerInputs(
        width=width,
        embedding=tensors.checked(embedding, (rows, both)),
        embedding_scale=float(width**0.5),
        projection=tensors.linear("per_layer_model_proj", both, body.hidden),
        projection_scale=float(body.hidden**-0.5),
        norm=tensors.norm("per_layer_proj_norm", width, body.eps),
        scale=float(2.0**-0.5),
    )


def per_layer_part(tensors: TensorNames, layer: int, body: Body, width: int) -> PerLayerSpec:
    """How one layer takes its own input in."""
    stem = f"blk.{layer}"
    return PerLayerSpec(
        gate=tensors.linear(f"{stem}.inp_gate", width, body.hidden),
        project=tensors.linear(f"{stem}.proj", body.hidden, width),
        norm=tensors.norm(f"{stem}.post_norm", body.hidden, body.eps),
        activation=Activation.GELU_TANH,
    )
