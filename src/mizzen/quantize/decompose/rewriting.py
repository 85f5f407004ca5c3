"""Rewriting a program in place, and what is done to a whole program before rules take it apart.

New nodes know their shapes and where they come from at once. Nothing is traced again: the shape of
a new node's result is found by running its operator alone on fake tensors.

Before the rules, operators in place become ones that give a new tensor. An in-place operator on a
value nothing else looks at gives a new value; one on a buffer, or on a part of it, gives the
buffer's new value, which is then copied there as a whole. And there gets less to do: what
parameters alone give is computed once, and what does nothing goes.
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

from mizzen.frontends.torch.operators import Role, row_of
from mizzen.quantize.decompose.extents import is_symbolic, with_nodes
from mizzen.quantize.nodes import HIDDEN, MASKED, SELECTED, operator_name, role_of, row_name
from mizzen.quantize.observers import StateReader

aten: Any = torch.ops.aten

KEPT_META = ("nn_module_stack", "stack_trace", "source_fn_stack", "torch_fn", SELECTED)
"""What a new node takes over from the node it is made for."""

Rule = Callable[["Rewriter", Node], Node | None]
"""Returns what replaces a node, or None where it stays."""


def _narrow(node: Node) -> bool:
    return False


@dataclass
class Rewriter:
    """Replaces nodes of one program by others, in order of execution.

    is_wide  whether a node's integers have 16 bits
    """

    module: GraphModule
    is_qat: bool = False
    is_wide: Callable[[Node], bool] = _narrow
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
        place, graph = self._current(), self.module.graph
        with graph.inserting_before(place):
            arguments = with_nodes(graph, arguments)
            node = graph.call_function(target, arguments, keywords)
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
        attribute = attribute_of(self.module, str(node.target))
        return attribute.detach() if isinstance(attribute, torch.Tensor) else None

    def value_or_none(self, node: object) -> torch.Tensor | None:
        """Return the tensor that a node reads now, also where training changes it."""
        if not isinstance(node, Node) or node.op != "get_attr":
            return None
        attribute = attribute_of(self.module, str(node.target))
        return attribute if isinstance(attribute, torch.Tensor) else None

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
    """Return the attribute at a dotted path, None where there is not one."""
    attribute: object = module
    for name in path.split("."):
        attribute = getattr(attribute, name, None)
    return attribute


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


PARTS = {"slice": aten.slice_scatter.default, "select": aten.select_scatter.default}
"""Views of a part of a tensor, and what replaces that part."""


@dataclass
class State:
    """A buffer, the node of its value at this point of the program, and what wrote that."""

    buffer: Node
    value: Node
    writer: Node | None = None


def remove_writes(rewriter: Rewriter) -> None:
    """Rewrite every in-place operator whose effect can be followed; others stay as they are."""
    states: dict[str, State] = {}
    for node in rewriter.nodes():
        if node.op == "get_attr" and str(node.target) in rewriter.written:
            _read(rewriter, node, states)
    for node in rewriter.nodes():
        if writes_first_operand(node):
            _rewrite(rewriter, node, states)


def _read(rewriter: Rewriter, buffer: Node, states: dict[str, State]) -> None:
    """Insert a reader after a buffer of numbers."""
    path = str(buffer.target)
    value = rewriter.value_or_none(buffer)
    if value is None or not value.is_floating_point() or isinstance(value, torch.nn.Parameter):
        return
    if path not in states:
        rewriter.at(buffer.next)
        reader = rewriter.call_module(StateReader(value), "state", [buffer], (buffer.meta["val"],))
        for user in buffer.users:
            if user is not reader:
                rewriter.take_over(reader, user)
                break
        states[path] = State(buffer, rewriter.item(reader, 0))
        rewriter.take_over(states[path].value, reader)
    state = states[path].value
    reader = state.all_input_nodes[0]
    buffer.replace_all_uses_with(state, delete_user_cb=lambda user: user is not reader)


def _rewrite(rewriter: Rewriter, node: Node, states: dict[str, State]) -> None:
    written = node.args[0]
    operator = _functional(node)
    if not isinstance(written, Node) or operator is None:
        return
    chain = _views(written)
    base = chain[0]
    state = next((state for state in states.values() if state.value is base), None)
    if state is None and not _is_private(chain, node):
        return
    rewriter.at(node)
    if operator_name(node) == "copy":
        value = _broadcast(rewriter, node)
    else:
        value = rewriter.call(operator, *node.args)
        if node.kwargs:
            value.kwargs = dict(node.kwargs)
    whole = value
    for view in chain[:0:-1]:
        scatter: Any = PARTS[operator_name(view)]
        whole = rewriter.call(scatter, view.args[0], whole, *view.args[1:])
    node.replace_all_uses_with(value)
    _replace_later(base, whole, node)
    if state is not None:
        if state.writer is not None:
            rewriter.module.graph.erase_node(state.writer)
        state.value = whole
        state.writer = rewriter.call(aten.copy_.default, state.buffer, whole)
    rewriter.module.graph.erase_node(node)


def _functional(node: Node) -> Any:
    """Return the operator that does the same on a new tensor, None where there is not one."""
    packet = getattr(aten, str(node.target).split(".")[1].removesuffix("_"), None)
    return getattr(packet, str(node.target).split(".")[2], None)


def _views(node: Node) -> list[Node]:
    """Return the base of a view of a part, and the views that lead to `node`."""
    chain = [node]
    while operator_name(chain[0]) in PARTS and isinstance(chain[0].args[0], Node):
        chain.insert(0, chain[0].args[0])
    return chain


def _is_private(chain: list[Node], writer: Node) -> bool:
    """Whether nothing else in the program can see that a value was changed in place.

    chain  the value, and the views of parts of it by which it is written
    An input is the caller's, whose tensors no artifact changes.
    """
    base = chain[0]
    if base.op not in ("call_function", "placeholder") or _is_view(base):
        return False
    behind = _behind(writer)
    later = behind if len(chain) > 1 else set[Node]()
    way = {*chain, writer}
    others = {user for user in base.users if _is_view(user)}
    others |= {user for view in chain[1:] for user in view.users}
    seen = {view for view in others if not _is_past(view, behind)}
    return seen <= way | {user for user in later if user in base.users}


def _is_past(view: Node, behind: set[Node]) -> bool:
    """Whether nothing reads a view, or a view of it, any more where a write has been."""
    if view in behind or not behind.isdisjoint(view.users):
        return False
    return all(_is_past(user, behind) for user in view.users if _is_view(user))


def _is_view(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return False
    return any(result.alias_info is not None for result in schema.returns)


def _broadcast(rewriter: Rewriter, node: Node) -> Node:
    target, source = node.args[:2]
    assert isinstance(target, Node)
    assert isinstance(source, Node)
    shape, dtype = target.meta["val"].shape, target.meta["val"].dtype
    if source.meta["val"].dtype != dtype:
        source = rewriter.call(aten.to.dtype, source, dtype)
    if source.meta["val"].shape == shape:
        return source
    return rewriter.call(aten.expand.default, source, list(shape))


def _behind(place: Node) -> set[Node]:
    """Return the nodes after one."""
    later: set[Node] = set()
    following = place.next
    while following.op != "root":
        later.add(following)
        following = following.next
    return later


def _replace_later(value: Node, replacement: Node, place: Node) -> None:
    """Let every use of `value` after `place` use `replacement`."""
    later = _behind(place)
    value.replace_all_uses_with(replacement, delete_user_cb=lambda user: user in later)


ELEMENTS = 1 << 24
"""The most elements of a folded constant: 64 MiB."""

COPIES = ("alias", "to", "_to_copy", "type_as")
# clone and contiguous stay: a view after them may need the order of elements that they give.


def fold(rewriter: Rewriter) -> None:
    """Replace every node whose operands are all constants by its value."""
    for node in rewriter.nodes():
        if node.op != "call_function" or not _is_constant(rewriter, node):
            continue
        if is_symbolic(getattr(node.meta["val"], "shape", ())):
            _repeat_first(rewriter, node)
            continue

        def real(argument: object) -> object:
            return _operand(rewriter, argument) if isinstance(argument, Node) else argument

        arguments: Any = tree_map(real, (node.args, dict(node.kwargs)))
        with torch.no_grad():
            value: object = cast(Any, node.target)(*arguments[0], **arguments[1])
        if isinstance(value, torch.Tensor) and row_name(node) == "empty_like":
            value = torch.zeros_like(value)  # what reads it may read anything
        if isinstance(value, (list, tuple)):
            parts = cast("list[torch.Tensor]", value)
            for item in list(node.users):
                _replace(rewriter, item, parts[cast(int, item.args[1])])
        elif isinstance(value, torch.Tensor):
            _replace(rewriter, node, value)


def _repeat_first(rewriter: Rewriter, node: Node) -> None:
    """Let one number, repeated along axes of unknown extent, take the place of a constant that is
    the same everywhere; others stay.
    """
    if row_name(node) not in FILLED:
        return
    fake = node.meta["val"]
    least = [1 if isinstance(extent, torch.SymInt) else extent for extent in fake.shape]
    number = _filled_with(node)
    if isinstance(number, Node):
        return
    value = torch.full(least, number, dtype=fake.dtype)
    first = rewriter.at(node).constant(value, "folded")
    node.replace_all_uses_with(rewriter.call(aten.expand.default, first, list(fake.shape)))
    rewriter.module.graph.erase_node(node)


FILLED = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "zero": 0, "empty": 0, "empty_like": 0,
          "new_empty": 0, "ones": 1, "ones_like": 1, "new_ones": 1, "full": None,
          "full_like": None, "new_full": None, "fill": None}  # fmt: skip
"""Operators that give one number everywhere, and which; None where their argument says."""


def _filled_with(node: Node) -> Any:
    known = FILLED[row_name(node)]
    return node.args[2 if row_name(node) == "new_full" else 1] if known is None else known


def _replace(rewriter: Rewriter, node: Node, value: torch.Tensor) -> None:
    """Let a constant take the place of a node, unless it is too large to be kept."""
    if value.numel() <= ELEMENTS:
        replacement = rewriter.at(node).constant(value.contiguous(), "folded")
        node.replace_all_uses_with(replacement)
        rewriter.module.graph.erase_node(node)


def _is_constant(rewriter: Rewriter, node: Node) -> bool:
    value = node.meta.get("val")
    several = isinstance(value, (list, tuple)) and all(
        user.target is operator.getitem for user in node.users
    )
    if not (several or isinstance(value, torch.Tensor)) or not operator_name(node):
        return False
    if torch.Tag.nondeterministic_seeded in cast(Any, node.target).tags:
        return False
    operands = node.all_input_nodes
    entry = row_of(node)
    if entry is not None and entry.is_source:
        return True
    return bool(operands) and all(is_frozen(rewriter, operand) for operand in operands)


def _operand(rewriter: Rewriter, node: Node) -> torch.Tensor:
    """Return an operand's value, or a tensor of its shape where only that is asked for."""
    value = rewriter.value(node)
    if value is None:
        fake = node.meta["val"]
        return torch.empty(tuple(fake.shape), dtype=fake.dtype)
    return value


def is_frozen(rewriter: Rewriter, node: Node) -> bool:
    """Whether a node is a constant that training does not change."""
    value = rewriter.value(node)
    if value is None:
        return False
    return not rewriter.is_qat or not node.meta["val"].requires_grad


def bound(rewriter: Rewriter) -> None:
    """Make masks of minus infinity finite, where they are added to scores."""
    for node in rewriter.nodes():
        if row_name(node) not in ("add", "baddbmm", "where"):
            continue
        for operand in node.all_input_nodes:
            value = rewriter.value(operand)
            if value is not None and value.is_floating_point() and bool(torch.isinf(value).any()):
                replacement = rewriter.at(node).constant(finite(value), "mask")
                node.replace_input_with(operand, replacement)


def finite(values: torch.Tensor) -> torch.Tensor:
    """Return a mask with a finite number in place of minus infinity."""
    return torch.where(values <= HIDDEN, MASKED, values)


def remove_idle(rewriter: Rewriter) -> None:
    """Remove dropout that is switched off, and copies of tensors that nothing writes to."""
    written = any(writes_first_operand(node) for node in rewriter.nodes())
    for node in rewriter.nodes():
        idle = _is_idle(node) or (not written and _is_copy(node))
        if idle and isinstance(node.args[0], Node):
            node.replace_all_uses_with(node.args[0])
            rewriter.module.graph.erase_node(node)


def forget_layouts(rewriter: Rewriter) -> None:
    """Let views be copies where the order of elements in memory is another than it was.

    An operator that was taken apart may leave its result in another order than PyTorch's own does.
    """
    nodes = rewriter.nodes()
    if not any(writes_first_operand(node) for node in nodes):
        for node in nodes:
            if node.target in VIEWS:
                node.target = aten.reshape.default


VIEWS = (aten.view.default, aten._unsafe_view.default)  # pyright: ignore[reportPrivateUsage] - PyTorch's name


def _is_idle(node: Node) -> bool:
    if role_of(node) is not Role.TRANSPARENT:
        return False
    training = node.args[2] if len(node.args) > 2 else False
    return not training


def _is_copy(node: Node) -> bool:
    """Whether a node gives what it is given, of the same type and shape."""
    if operator_name(node) not in COPIES or not isinstance(node.args[0], Node):
        return False
    before, after = node.args[0].meta.get("val"), node.meta.get("val")
    if before is None or after is None or isinstance(after, (list, tuple)):
        return False
    return before.dtype == after.dtype and shape_of(node.args[0]) == shape_of(node)
