"""Annotation: which values of a program become integers, and which of them share a scale.

Every value gets one scale, from its cluster; a consumer with another width reads it through a
second one. Where a producer's result is cut by a fused activation, it is not a value of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import (
    DerivedQuantizationSpec,
    FixedQParamsQuantizationSpec,
    QuantizationAnnotation,
    QuantizationSpec,
    QuantizationSpecBase,
    SharedQuantizationSpec,
)

from mizzen.frontends.torch.operators import Role, row_of
from mizzen.quantize.configuration import QuantizationConfig, Selection
from mizzen.quantize.decompose.training import NormalizedConvolution
from mizzen.quantize.nodes import (
    HIDES,
    MASK,
    channel_axis,
    cuts_at_zero,
    groups_of,
    known_range,
    role_of,
    row_name,
)
from mizzen.quantize.observers import Composite, StateReader, composite_of
from mizzen.quantize.recurrence import Kind
from mizzen.quantize.steps import RecurrentSteps


@dataclass
class Clusters:
    """Disjoint sets of values, each a node that produces a tensor (or several, by getitem)."""

    _parents: dict[Node, Node] = field(default_factory=dict[Node, Node])

    def root(self, value: Node) -> Node:
        """Return the value that stands for the cluster of `value`."""
        parents = self._parents
        root = value
        while (parent := parents.get(root, root)) is not root:
            root = parent
        while (parent := parents.get(value, value)) is not root:
            parents[value], value = root, parent
        return root

    def join(self, one: Node, other: Node) -> None:
        """Make the clusters of two values one."""
        self._parents[self.root(other)] = self.root(one)

    def members(self, values: list[Node]) -> Iterator[list[Node]]:
        """Return the clusters of `values`, in the order in which each one's first value comes."""
        clusters: dict[Node, list[Node]] = {}
        for value in values:
            clusters.setdefault(self.root(value), []).append(value)
        yield from clusters.values()


ANNOTATION = "quantization_annotation"
CUSTOM, ARM = "custom", "_arm_annotation_info"
"""Keys in a node's meta under which ExecuTorch's partitioner for Ethos-U asks what is quantised.

Ref: ExecuTorch 1.5, backends/arm/common/annotation_meta.py.
"""
OURS_ALONE = frozenset(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "mean"))
"""Operators that ExecuTorch's backend takes apart after the rounding, and cannot then lower."""
COMPOSITE = (Role.RECURRENT, Role.NORMALIZED, Role.STATE)
MOVING = (Role.SHARED, Role.TRANSPARENT)


def is_float(node: Node) -> bool:
    """Whether a node gives one tensor of floating-point numbers."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


def gives_float(node: Node) -> bool:
    """Whether a node gives floating-point numbers, in one tensor or several."""
    value = node.meta.get("val")
    if isinstance(value, (list, tuple)):
        parts = cast("list[object]", value)
        return any(isinstance(v, torch.Tensor) and v.dtype.is_floating_point for v in parts)
    return is_float(node)


@dataclass
class Annotator:
    """Annotates one program. Use once."""

    module: GraphModule
    selection: Selection
    clusters: Clusters = field(default_factory=Clusters)
    _hidden: set[Node] = field(default_factory=set[Node])
    _configs: dict[Node, QuantizationConfig] = field(default_factory=dict[Node, QuantizationConfig])
    _roles: dict[Node, Role] = field(default_factory=dict[Node, Role])
    _cluster_configs: dict[Node, QuantizationConfig] = field(
        default_factory=dict[Node, QuantizationConfig]
    )
    _cluster_specs: dict[Node, QuantizationSpecBase] = field(
        default_factory=dict[Node, QuantizationSpecBase]
    )
    _firsts: dict[Any, Any] = field(default_factory=dict[Any, Any])

    def run(self) -> None:
        """Annotate every node that has an integer form."""
        nodes = list(self.module.graph.nodes)
        self._find_roles(nodes)
        self._hide_fused()
        self._join()
        self._choose_specs(nodes)
        if self.selection.boundary is not None:
            self._annotate_inputs(nodes, self.selection.boundary)
        for node in self._roles:
            self._annotate(node)
        if self.selection.boundary is not None:
            self._annotate_outputs(nodes[-1], self.selection.boundary)

    def _find_roles(self, nodes: list[Node]) -> None:
        for node in nodes:
            role = composite_role(composite_of(self.module, node)) or role_of(node)
            config = None if role is None else self.selection.configuration(node)
            if role is None or config is None or config.weight is None:
                continue
            if node.target is operator.getitem:
                source = self._roles.get(node.all_input_nodes[0])
                if source in COMPOSITE:
                    role, config = Role.COMPUTED, self._state(config, node.args[1])
                elif source is None:
                    continue
            elif not _has_form(node, role) or (not config.is_qat and has_computed_weight(node)):
                continue
            self._roles[node] = role
            self._configs[node] = config

    def _hide_fused(self) -> None:
        for node in self._roles:
            before = node.all_input_nodes[0]
            if (
                cuts_at_zero(node)
                and before in self._roles
                and len(before.users) == 1
                and self._can_be_cut(before)
                and self._configs[before] == self._configs[node]
            ):
                self._hidden.add(before)

    def _can_be_cut(self, node: Node) -> bool:
        """Whether an activation can be fused with a node."""
        if node.target is operator.getitem:
            return self._roles.get(node.all_input_nodes[0]) is Role.NORMALIZED
        entry = row_of(node)
        return entry is not None and entry.cuttable

    @staticmethod
    def _state(config: QuantizationConfig, index: object) -> QuantizationConfig:
        """Return the configuration of a recurrent state: 0 is the hidden, 1 the cell state."""
        return config.wide() if index == 1 else config

    def _activations(self, node: Node) -> Iterator[Node]:
        """Return the operands of a node that are values with a range, each once."""
        operands: list[Any] = node.all_input_nodes
        match self._roles[node], composite_of(self.module, node):
            case (Role.WEIGHTED | Role.NORMALIZED, _):
                operands = operands[:1]
            case Role.STATE, _:
                operands = []
            case _, RecurrentSteps() as steps:
                operands = list(node.args[: 1 + steps.states])
            case _:
                pass
        for operand in operands:
            if isinstance(operand, Node) and operand not in self._hidden and gives_float(operand):
                yield operand

    def _join(self) -> None:
        for node, role in self._roles.items():
            operands = list(self._activations(node))
            if role in MOVING:
                for operand in operands:
                    self.clusters.join(operand, node)
            elif role is Role.COMPARED:
                for operand in operands[1:]:
                    self.clusters.join(operands[0], operand)
            elif role is Role.RECURRENT:
                for item in node.users:
                    index = cast(int, item.args[1])
                    self.clusters.join(operands[1 + index], item)
        for node in self._roles:
            if self._roles[node] is Role.STATE:
                self._join_written(node)

    def _join_written(self, reader: Node) -> None:
        """Let what is written to a buffer have the scale with which it is read."""
        (buffer,) = reader.all_input_nodes
        for writer in buffer.users:
            if str(writer.target) == "aten.copy_.default" and writer.args[0] is buffer:
                written = writer.args[1]
                assert isinstance(written, Node)
                for state in reader.users:
                    self.clusters.join(written, state)

    def _choose_specs(self, nodes: list[Node]) -> None:
        readers: dict[Node, list[QuantizationConfig]] = {}
        for node in self._roles:
            for operand in self._activations(node):
                root = self.clusters.root(operand)
                if self._roles[node] not in MOVING:
                    readers.setdefault(root, []).append(self._wanted(operand, node))
        for members in self.clusters.members(nodes):
            root = self.clusters.root(members[0])
            sources = [node for node in members if self._roles.get(node) not in (*MOVING, None)]
            writers = [self._configs[node] for node in sources]
            movers = [self._configs[node] for node in members if node in self._configs]
            configs = writers or readers.get(root) or movers
            if configs:
                config = max(configs, key=lambda config: config.bits)
                self._cluster_configs[root] = config
                self._cluster_specs[root] = self._spec(members, config)

    def _spec(self, members: list[Node], config: QuantizationConfig) -> QuantizationSpecBase:
        """Return a cluster's observer: fixed where every source's range is known and the same."""
        sources = [node for node in members if self._roles.get(node) not in MOVING]
        if all(node.op == "get_attr" for node in sources):
            return config.constant
        if any(node.meta.get(MASK) for node in sources):
            return config.mask_spec()
        if factors := [node.meta[HIDES] for node in sources if HIDES in node.meta]:
            return config.hiding_spec(min(factors))
        factor = scale_factor(sources[0]) if len(sources) == 1 else None
        if factor and sources[0] in self._roles and not self._is_divided(members):
            return self._scaled(sources[0], factor, config.activation)
        ranges = {known_range(node) if node in self._roles else None for node in sources}
        known = ranges.pop()
        if ranges or known is None:
            return config.activation
        wide = config.bits == 16
        return FixedQParamsQuantizationSpec(
            dtype=config.activation.dtype,
            scale=known.wide_scale if wide else known.scale,
            zero_point=0 if wide else known.zero_point,
            quant_min=config.activation.quant_min,
            quant_max=config.activation.quant_max,
            qscheme=config.activation.qscheme,
        )

    def _is_divided(self, members: list[Node]) -> bool:
        """Whether a cluster is read by a division, which wants scales of few bits."""
        readers = {user for node in members for user in node.users}
        return any(self._roles.get(reader) is Role.DIVIDED for reader in readers)

    def _scaled(self, node: Node, factor: float, like: QuantizationSpec) -> QuantizationSpecBase:
        """Return the specification of a multiplication by a number: other scale, same integers."""
        source = node.args[0]
        assert isinstance(source, Node)

        def derive(observers: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
            scale, zero_point = observers[0].calculate_qparams()
            return scale * factor, zero_point

        return DerivedQuantizationSpec(
            derived_from=[(source, node)],
            derive_qparams_fn=derive,
            dtype=like.dtype,
            quant_min=like.quant_min,
            quant_max=like.quant_max,
            qscheme=like.qscheme,
        )

    def _shared(self, key: Any, place: Any, spec: QuantizationSpecBase) -> QuantizationSpecBase:
        """Return `spec` where `key` is asked for first, and a reference to it later."""
        first = self._firsts.setdefault(key, place)
        return spec if first == place else SharedQuantizationSpec(first)

    def _wanted(self, value: Node, reader: Node) -> QuantizationConfig:
        """Return the configuration by which a node reads one of its operands."""
        config = self._configs[reader]
        if self._roles[reader] is Role.RECURRENT and value in reader.args[2:3]:
            return self._state(config, 1)
        return config

    def _read(self, value: Node, reader: Node) -> QuantizationSpecBase:
        root = self.clusters.root(value)
        config, wanted = self._cluster_configs[root], self._wanted(value, reader)
        edge = (value, reader)
        moving = self._roles[reader] in MOVING
        if moving or config.activation.dtype == wanted.activation.dtype:
            return self._shared(root, edge, self._cluster_specs[root])
        return self._shared((value, wanted.activation.dtype), edge, wanted.activation)

    def _annotate(self, node: Node) -> None:
        reads: dict[Node, QuantizationSpecBase | None] = {}
        for operand in self._activations(node):
            if is_float(operand):
                reads[operand] = self._read(operand, node)
        if self._roles[node] is Role.WEIGHTED:
            self._annotate_weights(node, reads)
        composite = composite_of(self.module, node)
        if isinstance(composite, RecurrentSteps):
            self._annotate_steps(node, composite, reads)
        elif isinstance(composite, NormalizedConvolution):
            composite.quantize_weights(self._configs[node])
        output = None
        if is_float(node) and node not in self._hidden:
            root = self.clusters.root(node)
            output = self._shared(root, node, self._cluster_specs[root])
        node.meta[ANNOTATION] = QuantizationAnnotation(reads, output, _annotated=True)
        if node.op == "call_function":
            taken = row_name(node) not in OURS_ALONE
            node.meta[CUSTOM] = {**node.meta.get(CUSTOM, {}), ARM: {"quantized": taken}}

    def _annotate_weights(self, node: Node, reads: dict[Node, QuantizationSpecBase | None]) -> None:
        config, (activation, weight) = self._configs[node], node.args[:2]
        bias = node.args[2] if len(node.args) > 2 else None
        axis: int | None = channel_axis(node)
        if axis == 1 and groups_of(node) > 1:
            axis = None  # axis 1 holds the channels of one group, not all
        if not isinstance(weight, Node):
            return
        reads[weight] = config.weight_spec(axis)
        if isinstance(bias, Node):
            edges = [(activation, node), (weight, node)]
            reads[bias] = config.bias_spec(edges, axis)

    def _annotate_steps(
        self, node: Node, steps: RecurrentSteps, reads: dict[Node, QuantizationSpecBase | None]
    ) -> None:
        config, hidden = self._configs[node], node.args[1]
        weight, *rest = node.args[1 + steps.states :]
        assert isinstance(weight, Node)
        reads[weight] = config.weight_spec(0)
        if rest and isinstance(rest[0], Node):
            reads[rest[0]] = config.bias_spec([(hidden, node), (weight, node)], 0)
        if steps.kind is Kind.GRU:
            steps.observe("difference", config.observer())

    def _annotate_inputs(self, nodes: list[Node], config: QuantizationConfig) -> None:
        for node in nodes:
            if node.op == "placeholder" and is_float(node):
                node.meta[ANNOTATION] = QuantizationAnnotation(
                    output_qspec=self._boundary(node, node, config), _annotated=True
                )

    def _annotate_outputs(self, output: Node, config: QuantizationConfig) -> None:
        reads: dict[Node, QuantizationSpecBase | None] = {
            value: self._boundary(value, (value, output), config)
            for value in output.all_input_nodes
            if is_float(value)
        }
        output.meta[ANNOTATION] = QuantizationAnnotation(reads, _annotated=True)

    def _boundary(
        self, value: Node, place: Any, config: QuantizationConfig
    ) -> QuantizationSpecBase:
        root = self.clusters.root(value)
        inner = self._cluster_configs.get(root)
        if inner is not None and inner.activation.dtype == config.activation.dtype:
            return self._shared(root, place, self._cluster_specs[root])
        return self._shared((value, config.activation.dtype), place, config.activation)


def _has_form(node: Node, role: Role) -> bool:
    """Whether a node computes with numbers, as its role says."""
    if not any(gives_float(operand) for operand in node.all_input_nodes):
        return False
    if role is Role.TRANSPARENT and node.all_input_nodes[0].op == "get_attr":
        return False  # the switch between training and inference
    return role in (Role.COMPARED, Role.CONSUMED) or gives_float(node)


def has_computed_weight(node: Node) -> bool:
    """Whether a layer's weight is no constant, so that its channels have no scales beforehand."""
    if channel_axis(node) is None or len(node.args) < 2:
        return False
    weight = node.args[1]
    return isinstance(weight, Node) and weight.op != "get_attr"


def composite_role(composite: Composite | None) -> Role | None:
    """Return the role of a node that calls a composite."""
    if isinstance(composite, RecurrentSteps):
        return Role.RECURRENT
    if isinstance(composite, NormalizedConvolution):
        return Role.NORMALIZED
    return Role.STATE if isinstance(composite, StateReader) else None


def scale_factor(node: Node) -> float | None:
    """Return the positive number that a node multiplies by, None for other nodes."""
    if row_name(node) != "mul" or not isinstance(node.args[1], (int, float)):
        return None
    return float(node.args[1]) if node.args[1] > 0 else None
