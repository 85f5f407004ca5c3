"""Lower an unquantised program to one graph of TOSA operations on floating-point numbers.

Nodes are taken in order. What depends on no input is computed by PyTorch and is a constant. An
operator that has no form is an error with its place: the file would not be the program.
"""

from __future__ import annotations

from typing import Any

from mizzen.diagnostics import MizzenError, fail
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.call import lowering_of
from mizzen.frontends.torch.fp_lowering.fp_context import (
    Context,
    Fixed,
    FpCall,
    Result,
    Term,
)
from mizzen.frontends.torch.operators import Missing, functional_name, overload_of, row_of
from mizzen.frontends.torch.operators.row import Form
from mizzen.frontends.torch.program import (
    GETITEM,
    Role,
    TorchProgram,
    is_tensor,
    kind_of,
    mapped,
    operator_of,
    without_gradient,
    zeros_like,
)
from mizzen.graph import Graph, TensorType, Value

SPLIT = "leave it out of the exported model, or write it with operators that the guide lists"

WITHOUT_RESULT = frozenset(
    {
        "aten._assert_tensor_metadata.default",
        "aten._assert_async.msg",
        "aten._assert_scalar.default",
        "aten.sym_constrain_range_for_size.default",
    }
)
"""Nodes that only check, at export."""


def lower_float(program: TorchProgram) -> Graph:
    """Lower a program. Its inputs and outputs are the program's, then its state.

    Integers of 64 bits have 32 in the graph. Raises E850 for an operator that has no form, E851
    for one that has none with its arguments or element types.
    """
    context = Context(program)
    _add_inputs(context)
    for node in program.nodes:
        if node.op == "call_function" and str(node.target) not in WITHOUT_RESULT:
            context.terms[node] = _lower(context, node)
    ends = [*program.outputs, *(state.write for state in program.states)]
    context.graph.set_outputs(context.value(node) for node in ends)
    context.graph.erase_dead()
    return context.graph


def is_computable(node: Any) -> bool:
    """Whether a node has a form for some arguments, or needs none."""
    row = row_of(node)
    if row is None:
        return str(node.target) in (GETITEM, *WITHOUT_RESULT)
    return row.is_source or not isinstance(row.floats, Missing)


def _add_inputs(context: Context) -> None:
    roles = context.program.roles
    for wanted in (Role.INPUT, Role.STATE):
        for node in (node for node, role in roles.items() if role is wanted):
            context.terms[node] = _input(context, node)
    for node in (node for node, role in roles.items() if role is Role.CONSTANT):
        if node.users:
            context.terms[node] = Fixed(context.program.tensor(node))


def _input(context: Context, node: Any) -> Value:
    meta = node.meta["val"]
    if not is_tensor(meta):
        raise fail(
            "E851",
            f"every input must be a tensor, and {node.name} is {meta!r}",
            origin=context.origin(node),
            help="give it to the model before export, or make it a tensor",
        )
    try:
        type = TensorType(tuple(map(int, meta.shape)), context.dtype(meta))
    except RefusedError as refused:
        raise _refused(context, node, refused) from None
    return context.graph.add_input(type, node.name)


def _lower(context: Context, node: Any) -> Result:
    if str(node.target) == GETITEM:
        return _item(context, node)
    folded = _folded(context, node)
    if folded is not None:
        return folded
    row = row_of(node)
    if row is None or isinstance(row.floats, Missing):
        raise _without_form(context, node, None if row is None else row.floats)
    try:
        return lowering_of(row.floats, node)(FpCall(context, node))
    except RefusedError as refused:
        raise _refused(context, node, refused) from None
    except MizzenError as error:
        if error.diagnostic.code not in ILL_TYPED:
            raise
        reason = RefusedError(error.diagnostic.message, SPLIT)
        raise _refused(context, node, reason) from None


def _item(context: Context, node: Any) -> Term:
    """Return one of several results; operators of the graph may have fewer than PyTorch's."""
    source, index = node.args[0], int(node.args[1])
    found = context.terms[source]
    assert isinstance(found, tuple)
    if index < len(found):
        return found[index]
    if not node.users:
        return found[0]
    raise _refused(context, source, RefusedError(f"its result {index} is used"))


ILL_TYPED = ("E162", "E803", "E804", "E805", "E806")
"""What TOSA itself does not take."""


def _without_form(context: Context, node: Any, missing: Form | None) -> MizzenError:
    return fail(
        "E850",
        f"every operator must have a form in TOSA's floating-point profile, and {kind_of(node)} "
        "has none",
        origin=context.origin(node),
        rule=missing.reason.format(kind=kind_of(node)) if isinstance(missing, Missing) else None,
        help=SPLIT,
    )


def _refused(context: Context, node: Any, refused: RefusedError) -> MizzenError:
    return fail(
        "E851",
        f"{kind_of(node)} has no form in TOSA's floating-point profile here: {refused.reason}",
        origin=context.origin(node),
        help=refused.help or SPLIT,
    )


def _folded(context: Context, node: Any) -> Result | None:
    """Let PyTorch compute a node that depends on no input."""
    row = row_of(node)
    known = row is not None and row.is_source
    if not known and not all(_is_fixed(context, source) for source in node.all_input_nodes):
        return None
    tags = [str(tag) for tag in getattr(node.target, "tags", ())]
    if any(tag.endswith("nondeterministic_seeded") for tag in tags):
        return None
    arguments, named = (
        mapped(part, lambda source: _tensor(context, source, known))
        for part in (node.args, node.kwargs)
    )
    found = without_gradient(_out_of_place(node), *arguments, **named)
    if is_tensor(found):
        return Fixed(found.clone())
    return tuple(Fixed(item.clone()) for item in found)


def _out_of_place(node: Any) -> Any:
    """Return what a node computes, which leaves the model's own tensors as they are."""
    return node.target if in_place_of(str(node.target)) is None else operator_of(overload_of(node))


def in_place_of(name: str) -> str | None:
    """Return the operator that computes what one in place does; None for others."""
    kept = functional_name(name) == name or not name.split(".")[1].endswith("_")
    return None if kept else functional_name(name)


def _is_fixed(context: Context, node: Any) -> bool:
    found = context.terms.get(node)
    if isinstance(found, tuple):
        return all(isinstance(term, Fixed) for term in found)
    return isinstance(found, Fixed)


def _tensor(context: Context, node: Any, made_up: bool) -> Any:
    found = context.terms.get(node)
    if isinstance(found, Fixed):
        return found.tensor.detach()
    assert made_up
    return zeros_like(node.meta["val"])
