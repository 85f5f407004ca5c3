"""Indices of 64 bits, which PyTorch has, as integers of 32 bits, which NPUs have.

PyTorch's indices come and go in 64 bits. Before an operator that looks up by a computed index, and
after one that finds an index, the index is put in 32 bits and back: as operators of PyTorch's, so
that whatever computes the neighbour, NPU or CPU, finds what it takes. What the host does with an
index that leaves or enters is the edge of an NPU's part, like rounding to integers; one that comes
in 32 bits is checked there all the same.

What is compared with a checked index, such as the positions that a mask hides, takes it in 32 bits
too, through whatever only moves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING, Any

from mizzen.frontends.torch.call import Arguments
from mizzen.frontends.torch.operators import row_of
from mizzen.frontends.torch.program import (
    GETITEM,
    TorchProgram,
    functional,
    is_tensor,
    results_of,
    taken_apart,
)

if TYPE_CHECKING:
    from torch.export import ExportedProgram

SOURCE = "mizzen_index"
"""The key of a node's metadata with its `Bound`."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What an index must be: in 0 to `size` - 1, or, if it may count from the end, from -`size`."""

    size: int
    counts_back: bool


LOOKED_UP = {
    "index_select": ("index", False),
    "gather": ("index", False),
    "index_copy": ("index", False),
    "index": ("indices", True),
    "index_put": ("indices", True),
    "embedding": ("indices", False),
}
"""Operator to the argument with indices, and whether they may count from the end."""

MOVING = ("view", "clone", "permute", "transpose", "t", "slice", "select", "expand")
"""Operators that an index may go through before it is used."""

COMPARING = ("eq", "ne", "ge", "gt", "le", "lt")

FINDERS = ("argmax", "argmin")
"""Operators of which the result is an index; `max.dim` and `min.dim` give one besides."""


def read(exported: ExportedProgram, name: str = "model") -> TorchProgram:
    """Take an exported program apart, with indices in 32 bits. E16x as `taken_apart`."""
    return taken_apart(functional(exported), name, narrowed)


def narrowed(graph: Any) -> Any:
    """Return a graph with indices in 32 bits, the same one if it has none."""
    if not any(_concerned(node) for node in graph.nodes):
        return graph
    copy: Any = graph.__deepcopy__()
    for node, copied in zip(graph.nodes, copy.nodes, strict=True):
        copied.name = node.name  # the program's tensors go by it, and PyTorch renames some
    for index, bound in _strict(copy).items():
        _share(copy, index, bound)
    for node in list(copy.nodes):
        bounds = [pair for pair in looked_up_by(node) if not is_widening(moved_from(pair[0]))]
        for index, bound in dict(bounds).items():
            # One index of dimensions of different sizes has no bound, and stays with PyTorch.
            if all(other == bound for same, other in bounds if same is index):
                node.replace_input_with(index, _in_32_bits(copy, node, index, bound))
        if _finds(node) and node.users:
            _behind(copy, node)
    return copy


def is_conversion(node: Any, source: str, result: str) -> bool:
    """Whether a node only brings integers from one type to another, named as PyTorch's are."""
    given: Any = node.args[0] if node.op == "call_function" and node.args else None
    if not hasattr(given, "meta") or str(getattr(node.target, "name", str)()) not in CONVERSIONS:
        return False
    types = [str(results_of(part)[0].dtype) for part in (given, node)]
    return types == [f"torch.{source}", f"torch.{result}"]


CONVERSIONS = ("aten::to.dtype", "aten::_to_copy", "aten::to.dtype_layout", "aten::to.other")


def is_narrowing(node: Any) -> bool:
    """Whether a node puts 64 bits into 32, or is where an index of 32 bits is checked."""
    checks = SOURCE in node.meta and is_conversion(node, "int32", "int32")
    return checks or is_conversion(node, "int64", "int32")


def is_widening(node: Any) -> bool:
    """Whether a node puts 32 bits into 64."""
    return is_conversion(node, "int32", "int64")


def _concerned(node: Any) -> bool:
    return _finds(node) or any(True for _ in looked_up_by(node))


def looked_up_by(node: Any) -> Iterator[tuple[Any, Bound]]:
    """Return the computed indices that a node looks up by."""
    entry = row_of(node) if node.op == "call_function" else None
    if entry is None or entry.name not in LOOKED_UP:
        return
    name, counts_back = LOOKED_UP[entry.name]
    call = Arguments(node)
    given: Any = call[name]
    pairs: Any = [(None, given)] if hasattr(given, "meta") else enumerate(given)
    for axis, index in pairs:
        if _has_type(index, "int64", "int32") and not is_widening(index):
            yield index, Bound(_extent(call, axis), counts_back)


def _extent(call: Arguments, axis: int | None) -> int:
    shape = call.shape_of(call.first)
    if axis is None:
        axis = call.axis() if "dim" in call.arguments else 0
    return shape[axis] if shape else 1


def _has_type(node: Any, *names: str) -> bool:
    meta: Any = node.meta.get("val") if hasattr(node, "meta") else None
    return is_tensor(meta) and str(meta.dtype).removeprefix("torch.") in names


def _finds(node: Any) -> bool:
    if node.op != "call_function" or not _has_type(node, "int64"):
        return False
    if str(node.target) == GETITEM:
        source = row_of(node.args[0])
        return source is not None and source.name in ("max", "min")
    entry = row_of(node)
    return entry is not None and entry.name in FINDERS


def found_below(node: Any) -> float:
    """Return the bound that an index that a node finds is below; infinity for another node."""
    if not _finds(node):
        return inf
    call = Arguments(node.args[0] if str(node.target) == GETITEM else node)
    shape = call.shape_of(call.first)
    return prod(shape) if call["dim"] is None else (shape or (1,))[call.axis()]


def _in_32_bits(graph: Any, node: Any, index: Any, bound: Bound) -> Any:
    with graph.inserting_before(node):
        short = _converted(graph, index, "int32")
        short.meta[SOURCE] = bound
        return _converted(graph, short, "int64")


def moved_from(index: Any) -> Any:
    """Return what an index is before it is moved."""
    while _moves(index) and len(index.all_input_nodes) == 1:
        (index,) = index.all_input_nodes
    return index


def _strict(graph: Any) -> dict[Any, Bound]:
    """Return indices of 64 bits that never count from the end, to the narrowest of their bounds."""
    bounds: dict[Any, Bound] = {}
    for node in graph.nodes:
        for index, bound in looked_up_by(node):
            source = moved_from(index)
            known = bounds.get(source, bound)
            if not bound.counts_back and bound.size <= known.size and _has_type(source, "int64"):
                bounds[source] = bound
    return {source: bound for source, bound in bounds.items() if not is_widening(source)}


def _share(graph: Any, index: Any, bound: Bound) -> None:
    """Let all that looks up by an index, or compares it, take the one that is checked once."""
    users = [user for user in index.users if _takes_checked(user, index)]
    if not users:
        return
    checked = _in_32_bits(graph, min(users), index, bound)
    for user in users:
        user.replace_input_with(index, checked)


def _takes_checked(node: Any, operand: Any) -> bool:
    """Whether a node looks up by an operand or compares it, or only moves it to what does."""
    entry = row_of(node) if node.op == "call_function" else None
    if entry is None:
        return False
    if _moves(node):
        return bool(node.users) and all(_takes_checked(user, node) for user in node.users)
    return entry.name in COMPARING or any(index is operand for index, _ in looked_up_by(node))


def _moves(node: Any) -> bool:
    entry = row_of(node) if node.op == "call_function" else None
    return entry is not None and entry.name in MOVING


def _behind(graph: Any, node: Any) -> None:
    users = list(node.users)
    with graph.inserting_after(node):
        short = _converted(graph, node, "int32")
    with graph.inserting_after(short):
        wide = _converted(graph, short, "int64")
    for user in users:
        user.replace_input_with(node, wide)


def _converted(graph: Any, node: Any, dtype: str) -> Any:
    import torch

    kind = getattr(torch, dtype)
    created = graph.call_function(torch.ops.aten.to.dtype, (node, kind))
    created.meta = {**node.meta, "val": node.meta["val"].to(kind)}
    created.meta.pop(SOURCE, None)
    return created
