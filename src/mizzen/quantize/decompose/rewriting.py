"""Rewriting a program in place: new nodes know their shapes and where they come from at once.

Nothing is traced again. The shape of a new node's result is found by running its operator alone
on fake tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

aten: Any = torch.ops.aten

KEPT_META = ("nn_module_stack", "stack_trace", "source_fn_stack", "torch_fn")
"""What a new node takes over from the node it is made for."""

Rule = Callable[["Rewriter", Node], Node | None]
"""Returns what replaces a node, or None where it stays."""


@dataclass
class Rewriter:
    """Replaces nodes of one program by others, in order of execution."""

    module: GraphModule
    is_qat: bool = False
    fake_mode: Any = None
    _place: Node | None = None
    _made: list[Node] = field(default_factory=list[Node])
    _constants: int = 0
    written: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.written = written_attributes(self.module)
        for node in self.nodes():
            value = node.meta.get("val")
            if self.fake_mode is None:
                self.fake_mode = getattr(value, "fake_mode", None)
            elif value is None and node.op == "get_attr":
                self._set_value_of_attribute(node)

    def nodes(self) -> list[Node]:
        """Return the program's nodes as they are now."""
        return list(self.module.graph.nodes)

    def apply(self, rule_of: Callable[[Node], Rule | None]) -> None:
        """Apply the rule of each node's operator, and those of the nodes that rules make."""
        waiting = self.nodes()[::-1]
        while waiting:
            node = waiting.pop()
            rule = rule_of(node)
            if rule is None:
                continue
            self._place, self._made = node, []
            replacement = rule(self, node)
            if replacement is not None:
                node.replace_all_uses_with(replacement)
                self.module.graph.erase_node(node)
                waiting += self._made[::-1]

    def call(self, target: Any, *arguments: Any, **keywords: Any) -> Node:
        """Insert a call before the node being rewritten, and return it."""
        place = self._current()
        with self.module.graph.inserting_before(place):
            node = self.module.graph.call_function(target, arguments, keywords)
        self._take_over(node, place)
        with self.fake_mode, torch.no_grad():
            node.meta["val"] = target(*fakes(arguments), **keywords)
        return node

    def call_module(
        self, submodule: torch.nn.Module, name: str, arguments: Iterable[Any], value: Any
    ) -> Node:
        """Add a submodule and insert a call of it, whose result is like `value`."""
        number = 0
        while hasattr(self.module, f"_{name}_{number}"):
            number += 1
        self.module.add_submodule(f"_{name}_{number}", submodule)
        place = self._current()
        with self.module.graph.inserting_before(place):
            node = self.module.graph.call_module(f"_{name}_{number}", tuple(arguments))
        self._take_over(node, place)
        node.meta["val"] = value
        return node

    def item(self, node: Node, index: int) -> Node:
        """Return one result of a node that has several."""
        with self.module.graph.inserting_before(self._current()):
            item = self.module.graph.call_function(operator.getitem, (node, index))
        self._take_over(item, self._current())
        item.meta["val"] = node.meta["val"][index]
        return item

    @staticmethod
    def take_over(node: Node, source: Node) -> None:
        """Let a node say that it comes from where `source` does."""
        node.meta |= {key: source.meta[key] for key in KEPT_META if key in source.meta}

    def at(self, node: Node) -> Rewriter:
        """Insert before `node` from now on."""
        self._place = node
        return self

    def record(self, target: Any, *arguments: Any) -> Node | None:
        """Insert what a compound operator does, as primitive operators; None where it cannot."""
        recorder = Recorder(self, arguments)
        with self.fake_mode, recorder:
            result = target(*fakes(arguments))
        return recorder.nodes.get(id(result))

    def constant(self, value: torch.Tensor, name: str = "constant") -> Node:
        """Add a buffer that holds `value` and return the node that reads it."""
        while hasattr(self.module, attribute := f"_{name}_{self._constants}"):
            self._constants += 1
        self._constants += 1
        self.module.register_buffer(attribute, value.detach().clone())
        with self.module.graph.inserting_before(self._current()):
            node = self.module.graph.get_attr(attribute)
        self._take_over(node, self._current())
        self._set_value_of_attribute(node)
        return node

    def read_again(self, node: Node) -> Node:
        """Insert another node that reads the same attribute."""
        with self.module.graph.inserting_before(self._current()):
            again = self.module.graph.get_attr(str(node.target))
        again.meta |= node.meta
        return again

    def value(self, node: object) -> torch.Tensor | None:
        """Return the tensor that a node always has; None where it depends on inputs or state."""
        if not isinstance(node, Node) or node.op != "get_attr" or str(node.target) in self.written:
            return None
        found = attribute_of(self.module, str(node.target))
        return found.detach() if isinstance(found, torch.Tensor) else None

    def value_or_none(self, node: object) -> torch.Tensor | None:
        """Return the tensor that a node reads now, also where training changes it."""
        if not isinstance(node, Node) or node.op != "get_attr":
            return None
        found = attribute_of(self.module, str(node.target))
        return found if isinstance(found, torch.Tensor) else None

    def _current(self) -> Node:
        assert self._place is not None, "a rewriter inserts at a place"
        return self._place

    def _take_over(self, node: Node, source: Node) -> None:
        self.take_over(node, source)
        self._made.append(node)

    def _set_value_of_attribute(self, node: Node) -> None:
        value = attribute_of(self.module, str(node.target))
        if isinstance(value, torch.Tensor) and self.fake_mode is not None:
            node.meta["val"] = self.fake_mode.from_tensor(value, static_shapes=True)


class Recorder(TorchDispatchMode):
    """Inserts every primitive operator that runs under it."""

    def __init__(self, rewriter: Rewriter, arguments: Iterable[Any]) -> None:
        base: Any = super()
        base.__init__()
        self.rewriter = rewriter
        self.nodes: dict[int, Node] = {}
        self._alive: list[Any] = []
        tree_map(self._know, tuple(arguments))

    def _know(self, argument: object) -> None:
        if isinstance(argument, Node):
            self.nodes[id(argument.meta["val"])] = argument
            self._alive.append(argument.meta["val"])

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` and insert a node that calls it."""

        def node_of(value: object) -> object:
            return self.nodes.get(id(value), value) if isinstance(value, torch.Tensor) else value

        node = self.rewriter.call(func, *tree_map(node_of, args), **(kwargs or {}))
        self._know(node)
        return node.meta["val"]


def fakes(arguments: Any) -> Any:
    """Return `arguments` with the fake tensors of nodes in their place."""

    def fake(argument: object) -> object:
        return argument.meta["val"] if isinstance(argument, Node) else argument

    return tree_map(fake, arguments)


def attribute_of(module: torch.nn.Module, path: str) -> object:
    """Return the attribute at a dotted path, None where there is none."""
    found: object = module
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def shape_of(node: Node) -> tuple[int, ...]:
    """Return the shape of a node's result."""
    return tuple(node.meta["val"].shape)


def writes_first_operand(node: Node) -> bool:
    """Whether a node changes its first operand in place."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or not schema.arguments:
        return False
    alias = schema.arguments[0].alias_info
    return alias is not None and bool(alias.is_write)


def written_attributes(module: GraphModule) -> set[str]:
    """Return the paths of the buffers that a program changes."""
    written: set[str] = set()
    for node in cast("Iterable[Node]", module.graph.nodes):
        if writes_first_operand(node) and isinstance(node.args[0], Node):
            base = node.args[0]
            while base.op == "call_function" and base.args and isinstance(base.args[0], Node):
                base = base.args[0]
            if base.op == "get_attr":
                written.add(str(base.target))
    return written
