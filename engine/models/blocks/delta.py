"""Gated delta rule layers: their sizes and their tensors, however those are fused.

Projections come apart (q | k | v, gate, beta, alpha) or fused for each key head in turn:
``[q | k | v of its value heads | gate of its value heads]`` and ``[beta | alpha]``; both are read
by rows, so that weights keep the bits of the file. No torch here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from engine.errors import CheckpointUnreadable
from engine.models.layers import Body
from engine.models.metadata import FamilyKeys
from engine.models.spec import DeltaSpec, HeadOrder, Linear, RecurrentSpec, RowRuns
from engine.models.tensors import TensorNames

KEYS: Mapping[str, str] = MappingProxyType(
    {
        "ssm.conv_kernel": "linear_conv_kernel_dim",
        "ssm.state_size": "linear_key_head_dim",
        "ssm.value_length": "linear_value_head_dim",
        "ssm.group_count": "linear_num_key_heads",
        "ssm.time_step_rank": "linear_num_value_heads",
    }
)
DEFAULTS: Mapping[str, int] = MappingProxyType(
    {
        "ssm.conv_kernel": 4,
        "ssm.state_size": 128,
        "ssm.value_length": 128,
        "ssm.group_count": 16,
        "ssm.time_step_rank": 32,
    }
)
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "blk.*.attn_qkv": "layers.*.linear_attn.in_proj_qkv",
        "blk.*.attn_gate": "layers.*.linear_attn.in_proj_z",
        "blk.*.ssm_beta": "layers.*.linear_attn.in_proj_b",
        "blk.*.ssm_alpha": "layers.*.linear_attn.in_proj_a",
        "blk.*.ssm_in": "layers.*.linear_attn.in_proj_qkvz",
        "blk.*.ssm_ba": "layers.*.linear_attn.in_proj_ba",
        "blk.*.ssm_conv1d": "layers.*.linear_attn.conv1d",
        "blk.*.ssm_dt.bias": "layers.*.linear_attn.dt_bias",
        "blk.*.ssm_a": "layers.*.linear_attn.A_log",
        "blk.*.ssm_norm": "layers.*.linear_attn.norm",
        "blk.*.ssm_out": "layers.*.linear_attn.out_proj",
    }
)


@dataclass(frozen=True, slots=True)
class DeltaRule:
    """What the gated delta rule layers of a model have in common.

    Attributes:
        hidden: columns of what they take in.
        eps: of the gated norm.
        decay_is_log: as in ``DeltaSpec``.
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    hidden: int
    eps: float
    order: HeadOrder
    decay_is_log: bool

    @property
    def channels(self) -> int:
        """Rows of q, k and v together."""
        return 2 * self.key_heads * self.key_dim + self.value_width

    @property
    def value_width(self) -> int:
        """Rows of the values of all heads."""
        return self.value_heads * self.value_dim

    @property
    def shared(self) -> int:
        """Value heads that a key head serves."""
        return self.value_heads // self.key_heads

    @property
    def convolution_shapes(self) -> tuple[tuple[int, ...], ...]:
        """How the same numbers may lie: GGUF's way, the published one and MLX's."""
        channels, kernel = self.channels, self.kernel
        return (channels, kernel), (channels, 1, kernel), (channels, kernel, 1)

    def recurrent(self, layer_count: int) -> RecurrentSpec:
        """The state of a stream over ``layer_count`` such layers."""
        return RecurrentSpec(
            layer_count,
            (self.value_heads, self.key_dim, self.value_dim),
            (self.kernel - 1, self.channels),
        )


def read_delta_rule(
    keys: FamilyKeys, body: Body, order: HeadOrder, *, decay_is_log: bool
) -> DeltaRule:
    """Read and cross-check the sizes."""
    key_heads, value_heads = keys.count("ssm.group_count"), keys.count("ssm.time_step_rank")
    if value_heads % key_heads:
        raise keys.refusal("ssm.time_step_rank", f"a multiple of the {key_heads} key heads")
    kernel = keys.count("ssm.conv_kernel")
    if kernel < 2:
        raise keys.refusal("ssm.conv_kernel", "2 or more inputs a convolution")
    if keys.has("ssm.value_length"):
        value_dim = keys.count("ssm.value_length")
    else:
        value_dim, rest = divmod(keys.count("ssm.inner_size"), value_heads)
        if rest or not value_dim:
            raise keys.refusal("ssm.inner_size", f"a multiple of the {value_heads} value heads")
    return DeltaRule(
        key_heads=key_heads,
        value_heads=value_heads,
        key_dim=keys.count("ssm.state_size"),
        value_dim=value_dim,
        kernel=kernel,
        hidden=body.hidden,
        eps=body.eps,
        order=order,
        decay_is_log=decay_is_log,
    )


def delta_layer(tensors: TensorNames, index: int, slot: int, rule: DeltaRule) -> DeltaSpec:
    """The mixer of block ``index``; ``slot`` counts such layers."""
    stem = f"blk.{index}"
    mixed, gate = _mixed_and_gate(tensors, stem, rule)
    beta, alpha = _beta_and_alpha(tensors, stem, rule)
    return DeltaSpec(
        slot=slot,
        key_head_count=rule.key_heads,
        value_head_count=rule.value_heads,
        key_dim=rule.key_dim,
        value_dim=rule.value_dim,
        kernel=rule.kernel,
        order=rule.order,
        mixed=mixed,
        gate=gate,
        beta=beta,
        alpha=alpha,
        convolution=tensors.one_of(f"{stem}.ssm_conv1d.weight", rule.convolution_shapes),
        decay=tensors.checked(f"{stem}.ssm_a", (rule.value_heads,)),
        decay_is_log=rule.decay_is_log,
        time_bias=tensors.checked(f"{stem}.ssm_dt.bias", (rule.value_heads,)),
        # Stored whole in every dialect, unlike the other norms of these families.
        norm=tensors.norm(f"{stem}.ssm_norm", rule.value_dim, rule.eps),
        output=tensors.linear(f"{stem}.ssm_out", rule.hidden, rule.value_width),
    )


def _mixed_and_gate(tensors: TensorNames, stem: str, rule: DeltaRule) -> tuple[Linear, Linear]:
    if not tensors.has(f"{stem}.ssm_in.weight"):
        return (
            tensors.linear(f"{stem}.attn_qkv", rule.channels, rule.hidden),
            tensors.linear(f"{stem}.attn_gate", rule.value_width, rule.hidden),
        )
    fused = tensors.linear(f"{stem}.ssm_in", rule.channels + rule.value_width, rule.hidden)
    _grouped_only(tensors, f"{stem}.ssm_in.weight", rule)
    keys, values = rule.key_dim, rule.shared * rule.value_dim
    rows = (
        *_each(rule.key_heads, (0, keys), 2 * (keys + values)),
        *_each(rule.key_heads, (keys, keys), 2 * (keys + values)),
        *_each(rule.key_heads, (2 * keys, values), 2 * (keys + values)),
    )
    gate = _each(rule.key_heads, (2 * keys + values, values), 2 * (keys + values))
    return Linear(fused.weight, fused.bias, rows), Linear(fused.weight, fused.bias, gate)


def _beta_and_alpha(tensors: TensorNames, stem: str, rule: DeltaRule) -> tuple[Linear, Linear]:
    if not tensors.has(f"{stem}.ssm_ba.weight"):
        return (
            tensors.linear(f"{stem}.ssm_beta", rule.value_heads, rule.hidden),
            tensors.linear(f"{stem}.ssm_alpha", rule.value_heads, rule.hidden),
        )
    fused = tensors.linear(f"{stem}.ssm_ba", 2 * rule.value_heads, rule.hidden)
    _grouped_only(tensors, f"{stem}.ssm_ba.weight", rule)
    beta = _each(rule.key_heads, (0, rule.shared), 2 * rule.shared)
    alpha = _each(rule.key_heads, (rule.shared, rule.shared), 2 * rule.shared)
    return Linear(fused.weight, fused.bias, beta), Linear(fused.weight, fused.bias, alpha)


def _each(count: int, run: tuple[int, int], stride: int) -> RowRuns:
    """``run`` once in each of ``count`` blocks of ``stride`` rows."""
    first, length = run
    return tuple((block * stride + first, length) for block in range(count))


def _grouped_only(tensors: TensorNames, name: str, rule: DeltaRule) -> None:
    if rule.order is not HeadOrder.GROUPED and rule.shared > 1:
        raise CheckpointUnreadable(
            f"{tensors.file}: tensor {tensors.name(name)} is fused for each key head, but this "
            "family's files order their value heads otherwise.",
            tensor=tensors.name(name),
        )
