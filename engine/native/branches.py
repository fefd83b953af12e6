"""Native operations of a layer's second half: feed-forwards, experts, per-layer inputs."""

from __future__ import annotations

import ctypes

from engine.models.spec import (
    Activation,
    Branch,
    ExpertsSpec,
    FeedForwardSpec,
    LayerSpec,
    Linear,
    PerLayerInputs,
    PerLayerSpec,
)
from engine.native.branch_buffers import adds_up
from engine.native.operations import Added, Entry, OperationBuilder
from kernels.cpu import records
from kernels.cpu.records import Kind, Weight


def per_layer_inputs(build: OperationBuilder, inputs: PerLayerInputs) -> list[Entry]:
    """What each layer takes in beside the residual, from ids and embedding."""
    buffers = build.parts.buffers
    record = records.PerLayer(
        embedding=build.parts.weights.file_rows(inputs.embedding),
        projected=buffers.outputs.data_ptr(),
        norm=build.norm(inputs.norm, inputs.width),
        to=buffers.branches.per_layer.data_ptr(),
        stride=buffers.outputs.stride(0),
        layers=len(build.spec.layers),
        width=inputs.width,
        embedding_scale=inputs.embedding_scale,
        projection_scale=inputs.projection_scale,
        scale=inputs.scale,
        eps=inputs.norm.eps,
    )
    product = build.product([inputs.projection])
    return [build.residual(None, None), product, (Kind.PER_LAYER, record)]


def second_half(
    build: OperationBuilder, layer: LayerSpec, index: int, added: Added
) -> tuple[list[Entry], Added]:
    """Branches and per-layer input of layer ``index``; returns what the residual gains next."""
    outputs = build.parts.buffers.outputs
    if adds_up(layer):
        found, added = _summed(build, layer, added)
    else:
        (branch,) = layer.branches
        found = _branch(build, branch, added)
        added = Added(outputs, branch.post_norm or layer.branches_post_norm)
    if layer.per_layer is not None:
        found += _take_in(build, layer.per_layer, index, added)
        added = Added(outputs, layer.per_layer.norm)
    return found, Added(added.rows, added.post, layer.scale)


def _summed(build: OperationBuilder, layer: LayerSpec, added: Added) -> tuple[list[Entry], Added]:
    branches, hidden = build.parts.buffers.branches, build.spec.hidden
    found: list[Entry] = []
    for index, branch in enumerate(layer.branches):
        found += _branch(build, branch, added if index == 0 else None)
        combine = records.Combine(
            added=build.parts.buffers.outputs.data_ptr(),
            post=build.norm(branch.post_norm, hidden),
            gates=None if branch.gate is None else branches.gates.data_ptr(),
            sum=branches.sums.data_ptr(),
            columns=hidden,
            added_stride=build.parts.buffers.outputs.stride(0),
            gate_stride=1,
            post_eps=0.0 if branch.post_norm is None else branch.post_norm.eps,
            first=int(index == 0),
        )
        found.append((Kind.COMBINE, combine))
    return found, Added(branches.sums, layer.branches_post_norm)


def _branch(build: OperationBuilder, branch: Branch, added: Added | None) -> list[Entry]:
    """From the residual, once ``added`` is in it, to the branch's outputs."""
    body = branch.body
    if isinstance(body, FeedForwardSpec):
        return [
            build.residual(added, branch.norm),
            *_branch_gate(build, branch),
            build.product([body.gate, body.up]),
            build.gate(body.activation, body.width),
            build.product([body.down]),
        ]
    router = build.product([body.router], build.parts.buffers.branches.logits)
    route = _route(build, body)
    routed: list[Entry] = [router, (Kind.ROUTE, route)]
    if body.router_norm is None:
        found = [build.residual(added, branch.norm), *routed]
    else:
        read = build.residual(added, body.router_norm)
        found = [read, *routed, build.residual(None, branch.norm)]
    return [*found, *_branch_gate(build, branch), *_experts(build, body, route)]


def _branch_gate(build: OperationBuilder, branch: Branch) -> list[Entry]:
    if branch.gate is None:
        return []
    return [build.product([branch.gate], build.parts.buffers.branches.gates)]


def _route(build: OperationBuilder, mixture: ExpertsSpec) -> records.Route:
    buffers = build.parts.buffers.branches
    scales = mixture.scales
    return records.Route(
        logits=buffers.logits.data_ptr(),
        scales=None if scales is None else build.parts.weights.floats(scales).data_ptr(),
        chosen=buffers.choice[0].data_ptr(),
        weights=buffers.weights.data_ptr(),
        places=None if build.is_step else buffers.choice[1].data_ptr(),
        starts=None if build.is_step else buffers.starts.data_ptr(),
        stride=buffers.logits.stride(0),
        experts=len(mixture.experts),
        active=mixture.active_count,
        scale=mixture.router_scale,
        reserved=0,
    )


def _experts(build: OperationBuilder, mixture: ExpertsSpec, route: records.Route) -> list[Entry]:
    buffers, experts = build.parts.buffers, mixture.experts
    pairs, outputs = buffers.branches, buffers.branches.outputs
    width = experts[0].width
    inner = ctypes.pointer(pairs.pair_inputs(codes=build.is_step))
    common = {
        "route": ctypes.pointer(route),
        "gathered": pairs.gathered.data_ptr(),
        "scratch": buffers.dense_scratch.data_ptr(),
        "scratch_stride": buffers.sizes.dense_scratch,
    }
    into = records.Experts(
        source=build.inputs, output=outputs.data_ptr(), count=2, stride=outputs.stride(0), **common
    )
    into.weights[0] = _listed(build, [expert.gate for expert in experts])
    into.weights[1] = _listed(build, [expert.up for expert in experts])
    gate = records.Gate(
        gates=outputs.data_ptr(),
        ups=outputs[:, width:].data_ptr(),
        to=inner,
        stride=outputs.stride(0),
        up_stride=outputs.stride(0),
        columns=width,
        gelu=int(experts[0].activation is Activation.GELU_TANH),
        copies=mixture.active_count,
    )
    out = records.Experts(
        source=inner,
        output=buffers.outputs.data_ptr(),
        count=1,
        stride=buffers.outputs.stride(0),
        **common,
    )
    out.weights[0] = _listed(build, [expert.down for expert in experts])
    if build.is_step:
        return [(Kind.EXPERTS_IN, into), (Kind.GATE, gate), (Kind.EXPERTS_OUT, out)]
    return [(Kind.EXPERTS_DENSE_IN, into), (Kind.GATE, gate), (Kind.EXPERTS_DENSE_OUT, out)]


def _listed(build: OperationBuilder, linears: list[Linear]) -> ctypes._Pointer[Weight]:
    listed = (Weight * len(linears))(*(build.parts.weights.product(each) for each in linears))
    return ctypes.cast(listed, ctypes.POINTER(Weight))


def _take_in(build: OperationBuilder, layer: PerLayerSpec, index: int, added: Added) -> list[Entry]:
    """``project(activation(gate(x)) * p)`` of a layer's own piece p, into the outputs."""
    inputs = build.spec.per_layer
    assert inputs is not None
    piece = build.parts.buffers.branches.per_layer[:, index * inputs.width :]
    return [
        build.residual(added, None),
        build.product([layer.gate]),
        build.gate(layer.activation, inputs.width, piece),
        build.product([layer.project]),
    ]
