"""Parts of a layer of which the caller knows the kind."""

from __future__ import annotations

from engine.errors import InvariantBroken
from engine.models.spec import AttentionSpec, FeedForwardSpec, LayerSpec, Linear


def attention_of(layer: LayerSpec) -> AttentionSpec:
    """The layer's attention; the model was found to have it in every layer."""
    if not isinstance(layer.mixer, AttentionSpec):
        raise InvariantBroken("A layer without attention has no native code.")
    return layer.mixer


def feed_forward_of(layer: LayerSpec) -> FeedForwardSpec:
    """The layer's only branch; the model was found to have one in every layer."""
    body = layer.branches[0].body
    if not isinstance(body, FeedForwardSpec):
        raise InvariantBroken("A layer with experts has no native code.")
    return body


def projections(attention: AttentionSpec) -> list[Linear]:
    """Query, key and value, as far as the layer has them."""
    own = (attention.query, attention.key, attention.value)
    return [linear for linear in own if linear is not None]
