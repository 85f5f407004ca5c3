"""Take an unquantised program apart, in the form that needs the least rewriting.

PyTorch makes updates in place explicit only by tracing the whole program again, which takes longer
than lowering it. Where an update in place is of a tensor that nothing else sees, it is taken for
what it computes instead. Operators without a form are decomposed as PyTorch itself does.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from mizzen.diagnostics import fail
from mizzen.frontends.torch.fp_lowering.fp_lower import in_place_of, is_computable
from mizzen.frontends.torch.program import TorchProgram, functional, kind_of, origin_of, taken_apart

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def read_float(exported: ExportedProgram, name: str = "model") -> TorchProgram:
    """Take an unquantised program apart. E852 for a quantised one, E16x as for every program."""
    nodes: list[Any] = list(exported.graph.nodes)
    for index, node in enumerate(nodes):
        if node.op == "call_function" and kind_of(node).startswith("quantized_decomposed."):
            raise fail(
                "E852",
                "a program for the floating-point profile must not be quantised, and this one is",
                origin=origin_of(node, name, index),
                help="use profile INT, or export the model as it was before prepare_pt2e",
            )
    if not all(map(_is_harmless, nodes)):
        exported = functional(exported)
    for _ in range(ROUNDS):
        simpler = _decomposed(exported)
        if simpler is exported:
            break
        exported = simpler
    return taken_apart(exported, name)


ROUNDS = 3
"""How often what operators are decomposed to is decomposed itself."""


def _is_harmless(node: Any) -> bool:
    """Whether a node changes no tensor, or one that only it sees, computed just for it."""
    if node.op != "call_function" or not _schema_has(node, "is_mutable"):
        return True
    changed: Any = node.args[0] if node.args else None
    return (
        in_place_of(str(node.target)) is not None
        and getattr(changed, "op", None) == "call_function"
        and list(changed.users) == [node]
        and not _aliases(changed)
    )


def _aliases(node: Any) -> bool:
    """Whether a node may give memory of another."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return True
    if str(node.target) in SOMETIMES_VIEWS:
        return True
    returned = any(item.alias_info is not None for item in schema.returns)
    return returned and not (in_place_of(str(node.target)) and _is_harmless(node))


SOMETIMES_VIEWS = frozenset(
    {
        "aten.reshape.default",
        "aten.contiguous.default",
        "aten.flatten.using_ints",
        "aten.to.dtype",
        "aten.to.dtype_layout",
        "aten.dropout.default",
        "aten.expand.default",
    }
)
"""Operators that give a view or a copy, as it turns out."""


def _schema_has(node: Any, property: str) -> bool:
    return bool(getattr(getattr(node.target, "_schema", None), property, False))


def _decomposed(exported: ExportedProgram) -> ExportedProgram:
    """Decompose operators that have no form and for which PyTorch knows simpler ones."""
    dynamic = _dynamic(exported)
    missing = {
        node.target
        for node in exported.graph.nodes
        if node in dynamic and node.op == "call_function" and not is_computable(node)
    }
    if not missing:
        return exported
    from torch._decomp import core_aten_decompositions

    known: Any = core_aten_decompositions()
    table = {target: known[target] for target in missing if target in known}
    if not table:
        return exported
    program: Any = exported
    with warnings.catch_warnings():
        # PyTorch warns of a class of its own, of which no user has an object.
        warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec")
        return program.run_decompositions(table)


def _dynamic(exported: ExportedProgram) -> set[Any]:
    """Return the nodes that depend on an input or on state."""
    signature = exported.graph_signature
    mutated = set(signature.buffers_to_mutate.values())
    states = {name for name, target in signature.inputs_to_buffers.items() if target in mutated}
    given = states.union(map(str, signature.user_inputs))
    dynamic: set[Any] = set()
    nodes: list[Any] = list(exported.graph.nodes)
    for node in nodes:
        if node.name in given or not dynamic.isdisjoint(node.all_input_nodes):
            dynamic.add(node)
    return dynamic
