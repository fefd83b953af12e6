"""Layers with a plain softmax router over many experts, and one expert that every row takes.

No torch here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from engine.checkpoint.source import Dialect, MetadataValue
from engine.errors import UnsupportedFamily
from engine.models.experts import ExpertSizes, experts
from engine.models.metadata import FamilyKeys
from engine.models.spec import Activation, Branch, ExpertsSpec, FeedForwardSpec, Norm
from engine.models.tensors import TensorNames

MOST_EXPERTS = 1 << 17
"""Of all layers together: several times what any published model has."""
SOFTMAX = 1
SHARED_KEYS: Mapping[str, str] = MappingProxyType(
    {"expert_shared_feed_forward_length": "shared_expert_intermediate_size"}
)
SPARSE_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "expert_weights_norm": "norm_topk_prob",
        "expert_interval": "decoder_sparse_step",
        "dense_layers": "mlp_only_layers",
    }
)
"""Of families whose configs may weight experts otherwise, or leave some layers without."""
_NAMES = {
    "blk.*.ffn_gate_inp": "layers.*.mlp.gate",
    "blk.*.ffn_gate_inp_shexp": "layers.*.mlp.shared_expert_gate",
    "blk.*.ffn_gate_shexp": "layers.*.mlp.shared_expert.gate_proj",
    "blk.*.ffn_up_shexp": "layers.*.mlp.shared_expert.up_proj",
    "blk.*.ffn_down_shexp": "layers.*.mlp.shared_expert.down_proj",
    "blk.*.ffn_gate.*": "layers.*.mlp.experts.*.gate_proj",
    "blk.*.ffn_up.*": "layers.*.mlp.experts.*.up_proj",
    "blk.*.ffn_down.*": "layers.*.mlp.experts.*.down_proj",
}
_STACKS = {
    "blk.*.ffn_gate_up_exps.weight": "layers.*.mlp.experts.gate_up_proj",
    "blk.*.ffn_down_exps.weight": "layers.*.mlp.experts.down_proj",
}
_MLX_STACKS = {
    "blk.*.ffn_gate_exps": "layers.*.mlp.switch_mlp.gate_proj",
    "blk.*.ffn_up_exps": "layers.*.mlp.switch_mlp.up_proj",
    "blk.*.ffn_down_exps": "layers.*.mlp.switch_mlp.down_proj",
}


def stored_names(dialect: Dialect) -> Mapping[str, str]:
    """What checkpoints of a dialect call the parts of a mixture."""
    return _NAMES | (_MLX_STACKS if dialect is Dialect.MLX else _STACKS)


@dataclass(frozen=True, slots=True)
class Mixture:
    """What the mixtures of a model have in common.

    Attributes:
        active_count: experts that a row takes.
        shared_width: inner columns of the expert that every row takes, None for none.
    """

    sizes: ExpertSizes
    active_count: int
    shared_width: int | None


def read_mixture(keys: FamilyKeys, hidden: int, *, shared: bool) -> Mixture:
    """Read and cross-check the counts.

    Args:
        shared: the family has an expert that every row takes.

    Raises:
        UnsupportedFamily: experts are chosen or weighted in another way.
    """
    blocks = keys.count("block_count")
    total, active = keys.count("expert_count"), keys.count("expert_used_count")
    if total * blocks > MOST_EXPERTS:
        raise keys.refusal("expert_count", f"at most {MOST_EXPERTS // blocks}")
    if active > total:
        raise keys.refusal("expert_used_count", f"at most the {total} experts")
    _refuse_other_weights(keys, total, active)
    width = keys.count("expert_feed_forward_length")
    shared_width = keys.count("expert_shared_feed_forward_length", width) if shared else None
    return Mixture(ExpertSizes(hidden, total, width, Activation.SILU), active, shared_width)


def mixture_branches(
    tensors: TensorNames, index: int, norm: Norm, mixture: Mixture
) -> tuple[Branch, ...]:
    """The chosen experts of block ``index``, and the shared one where there is one."""
    stem, sizes = f"blk.{index}.ffn", mixture.sizes
    router = tensors.linear(f"{stem}_gate_inp", sizes.count, sizes.hidden)
    chosen = ExpertsSpec(mixture.active_count, router, experts(tensors, stem, sizes))
    width = mixture.shared_width
    if width is None:
        return (Branch(norm, chosen),)
    shared = FeedForwardSpec(
        width=width,
        gate=tensors.linear(f"{stem}_gate_shexp", width, sizes.hidden),
        up=tensors.linear(f"{stem}_up_shexp", width, sizes.hidden),
        down=tensors.linear(f"{stem}_down_shexp", sizes.hidden, width),
        activation=sizes.activation,
    )
    gate = tensors.row(f"{stem}_gate_inp_shexp", sizes.hidden)
    return Branch(norm, chosen), Branch(norm, shared, gate=gate)


def expert_layers(keys: FamilyKeys, layer_count: int) -> tuple[bool, ...]:
    """For each layer whether it has experts; where a file does not say, all have."""
    interval = keys.count("expert_interval", 1)
    stated = keys.raw("dense_layers")
    dense: Sequence[MetadataValue] = ()
    if isinstance(stated, Sequence) and not isinstance(stated, str):
        dense = stated
    elif stated is not None:
        raise keys.refusal("dense_layers", "a list of layers without experts")
    if not all(isinstance(index, int) for index in dense):
        raise keys.refusal("dense_layers", "whole numbers, one for each layer without experts")
    return tuple(index not in dense and (index + 1) % interval == 0 for index in range(layer_count))


def _refuse_other_weights(keys: FamilyKeys, total: int, active: int) -> None:
    rule = keys.count_or_zero("expert_gating_func")
    if rule not in (0, SOFTMAX):
        sentence = f"{keys.file} chooses experts by rule {rule}; only softmax ({SOFTMAX}) runs."
        raise UnsupportedFamily(sentence, rule=rule)
    scale = keys.number("expert_weights_scale", 1.0)
    if not keys.flag("expert_weights_norm", True) or scale not in (0.0, 1.0):
        raise UnsupportedFamily(
            f"{keys.file} weights the {active} chosen of {total} experts by other than their "
            f"share of the chosen (times {scale:g}), which does not run here.",
            expert_count=total,
        )
