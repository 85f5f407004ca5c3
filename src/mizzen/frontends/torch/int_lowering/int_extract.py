"""Take parts of an exported program out, for PyTorch to run on their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mizzen.frontends.torch.int_lowering.int_context import is_dequantize, signed_offset
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.frontends.torch.narrowing import is_widening
from mizzen.frontends.torch.program import GETITEM
from mizzen.graph import Value


@dataclass(frozen=True, eq=False)
class TorchPart:
    """A part of a program: a module from the values that it takes to those that it gives."""

    module: Any
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


def extract(lowered: Lowered, groups: Iterable[int], outputs: Iterable[Value]) -> TorchPart:
    """Make a module of some groups, which gives the values in `outputs`."""
    members = {node for group in groups for node in lowered.nodes[group]}
    return _Extraction(lowered, members).build(tuple(outputs))


class _Extraction:
    """Copies nodes into a new module."""

    def __init__(self, lowered: Lowered, members: set[Any]) -> None:
        import torch

        self.lowered = lowered
        self.members = members
        self.root = torch.nn.Module()
        self.graph = torch.fx.Graph()
        self.copies: dict[Any, Any] = {}
        self.inputs: dict[Value, Any] = {}

    def build(self, outputs: tuple[Value, ...]) -> TorchPart:
        import torch

        wanted = [self.lowered.node_of[value] for value in outputs]
        for node in self.lowered.program.nodes:
            if self._is_member(node):
                self._copy(node)
        self.graph.output(tuple(self._signed(node) for node in wanted))
        module = torch.fx.GraphModule(self.root, self.graph)
        return TorchPart(module, tuple(self.inputs), outputs)

    def _is_member(self, node: Any) -> bool:
        """Whether a node, or the one whose several results it takes apart, is of the groups."""
        if str(node.target) == GETITEM and node.args[0] in self.members:
            return True
        return node in self.members

    def _copy(self, node: Any) -> Any:
        if node not in self.copies:
            for source in node.all_input_nodes:
                self._provide(source)
            self.copies[node] = self.graph.node_copy(node, lambda source: self.copies[source])
        return self.copies[node]

    def _provide(self, node: Any) -> None:
        """Make an input of a copied node available: copied, a constant, or an input."""
        if node in self.copies:
            return
        if node in self.lowered.constants:
            self.copies[node] = self._constant(node)
        elif self._is_member(node) or is_dequantize(node) or is_widening(node):
            self._copy(node)
        elif self._is_member(same := self._same(node)):
            self.copies[node] = self._copy(same)
        else:
            self.copies[node] = self._unsigned(node, self._input(node))

    def _unsigned(self, node: Any, given: Any) -> Any:
        """Return the bytes that PyTorch has for the graph's integers, where these differ."""
        import torch

        return self._shifted(given, signed_offset(node), torch.uint8)

    def _signed(self, node: Any) -> Any:
        """Return the graph's integers for a node that is copied."""
        import torch

        return self._shifted(self.copies[node], -signed_offset(node), torch.int8)

    def _shifted(self, given: Any, offset: int, dtype: Any) -> Any:
        import torch

        if not offset:
            return given
        aten: Any = torch.ops.aten
        wide = self.graph.call_function(aten.to.dtype, (given, torch.int16))
        moved = self.graph.call_function(aten.add.Tensor, (wide, offset))
        return self.graph.call_function(aten.to.dtype, (moved, dtype))

    def _same(self, node: Any) -> Any:
        """Return the node that computes a value: another may only make the same integers again."""
        return self.lowered.node_of[self.lowered.value_of[node]]

    def _constant(self, node: Any) -> Any:
        name = f"constant_{node.name}"
        self.root.register_buffer(name, self.lowered.constants[node])
        return self.graph.get_attr(name)

    def _input(self, node: Any) -> Any:
        value = self.lowered.value_of[node]
        if value not in self.inputs:
            # Placeholders must come first.
            first = next(iter(self.graph.nodes), None)
            if first is None:
                self.inputs[value] = self.graph.placeholder(node.name)
            else:
                last = list(self.inputs.values())[-1:] or [None]
                point = first if last[0] is None else last[0].next
                with self.graph.inserting_before(point):
                    self.inputs[value] = self.graph.placeholder(node.name)
        return self.inputs[value]
