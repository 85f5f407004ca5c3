"""Lower an unquantised program to one graph of TOSA operations on floating-point numbers.

Nodes are taken in order. What depends on no input is computed by PyTorch and is a constant. An
operator that has no form is an error with its place: the file would not be the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.call import Call, Move, lowering_of
from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.operators import Missing, functional_name, overload_of, row_of
from mizzen.frontends.torch.operators.row import Form
from mizzen.frontends.torch.program import (
    GETITEM,
    WITHOUT_RESULT,
    Array,
    Role,
    TorchProgram,
    is_tensor,
    kind_of,
    mapped,
    operator_of,
    origin_of,
    results_of,
    tensor_type,
    without_gradient,
    zeros_like,
)
from mizzen.graph import DType, Graph, TensorType, Value
from mizzen.ops import Builder

WIDTHS = {DType.INT64: DType.INT32}
"""Integers that TOSA 1.0 lacks to those that stand for them; indices fit."""

ELEMENTS = frozenset(
    {DType.BOOL, DType.INT8, DType.INT16, DType.INT32, DType.FP16, DType.BF16, DType.FP32}
)
"""Element types that tensors of the graph have."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A tensor of PyTorch's that no input changes."""

    tensor: Any


Term = Value | Fixed
Result = Term | tuple[Term, ...]


class Context:
    """What is known while a program is lowered.

    terms     FX node to what it stands for
    absorbed  batch norms that are part of the convolution before them
    """

    def __init__(self, program: TorchProgram) -> None:
        self.program = program
        self.graph = Graph(program.name)
        self.terms: dict[Any, Result] = {}
        self.absorbed: set[Any] = set()
        self._constants: dict[Any, Value] = {}
        self._index = {node: index for index, node in enumerate(program.nodes)}

    def origin(self, node: Any) -> Origin:
        """Say where a node comes from."""
        return origin_of(node, self.program.name, self._index[node])

    def builder(self, node: Any) -> Builder:
        """Return a builder whose operations belong to a node."""
        return Builder(self.graph, self.origin(node), self._index[node])

    def dtype(self, meta: Any) -> DType:
        """Return the element type that a tensor of PyTorch's has in the graph. RefusedError."""
        given = tensor_type(meta, None).dtype
        type_ = WIDTHS.get(given, given)
        if type_ not in ELEMENTS:
            raise RefusedError(
                f"its elements are {meta.dtype}, which TOSA 1.0 does not compute with",
                "convert the model: `model.float()`, or `.to(torch.int32)` for integers",
            )
        return type_

    def value(self, node: Any) -> Value:
        """Return a node's tensor as a value of the graph; a constant is one value for all users."""
        term = self.terms[node]
        assert not isinstance(term, tuple), node
        if isinstance(term, Value):
            return term
        if node not in self._constants:
            self._constants[node] = self.constant(term)
        return self._constants[node]

    def constant(self, fixed: Fixed) -> Value:
        """Add a constant. RefusedError for integers that 32 bits do not hold."""
        dtype = self.dtype(fixed.tensor)
        array = array_of(fixed.tensor)
        if dtype is DType.INT32 and array.size and np.abs(array).max() > np.iinfo(np.int32).max:
            raise RefusedError("it has a constant that 32 bits do not hold")
        return self.graph.constant(array.astype(dtype.numpy, copy=False), dtype)


def array_of(tensor: Any) -> Array:
    """Return a tensor of PyTorch's as an array; bf16 as float32."""
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    return np.ascontiguousarray(tensor.numpy()).reshape(tensor.shape)


class FpCall(Call[Value]):
    """A node that is being lowered to floating-point operations."""

    def __init__(self, context: Context, node: Any) -> None:
        super().__init__(node)
        self.context = context
        self.b = context.builder(node)

    @property
    def dtype(self) -> DType:
        """The element type of the result, or of the first of several."""
        return self.context.dtype(results_of(self.node)[0])

    @property
    def gives_several(self) -> bool:
        """Whether the operator gives a tuple."""
        return isinstance(self.node.meta["val"], (tuple, list))

    def value(self, name: str) -> Value:
        """Return an argument that is a tensor."""
        return self.context.value(self.arguments[name])

    def values(self, name: str) -> list[Value]:
        """Return an argument that is a list of tensors."""
        return [self.context.value(node) for node in self.arguments[name]]

    def operand(self, name: str) -> Value | float:
        """Return an argument that is a tensor or a number."""
        argument = self.arguments[name]
        return self.context.value(argument) if hasattr(argument, "meta") else argument

    def fixed(self, name: str) -> Array | None:
        """Return an argument as an array if it is a constant of the program."""
        argument = self.arguments.get(name)
        term = self.context.terms[argument] if hasattr(argument, "meta") else None
        return array_of(term.tensor) if isinstance(term, Fixed) else None

    def constant(self, name: str) -> Array:
        """Return an argument that must be a constant of the program."""
        array = self.fixed(name)
        if array is None:
            raise RefusedError(
                f"its {name} is computed from the model's inputs",
                f"make {name} a parameter or a buffer of the module",
            )
        return array

    def moved(self, move: Move) -> Value:
        """Return the input with its elements moved."""
        return move(self.value(self.first))

    def parted(self, moves: Sequence[Move]) -> tuple[Value, ...]:
        """Return several tensors that the input's elements are moved to."""
        return tuple(map(self.moved, moves))

    def itself(self) -> Value:
        """Return the input in the type of the result."""
        return a.cast(self.b, self.value(self.first), self.dtype)

    def alike(self, operands: Sequence[Any], build: Callable[..., Value]) -> Value:
        """Return the result that `build` makes of operands in the type of the result."""
        return build(*map(self._alike, operands))

    def _alike(self, operand: Any) -> Value:
        if hasattr(operand, "meta"):
            return a.cast(self.b, self.context.value(operand), self.dtype)
        return a.number(self.b, operand, self.dtype, 1)

    def truth(self, name: str) -> Value:
        """Return an argument as truth values: what is not 0 is true."""
        given = self.operand(name)
        if isinstance(given, Value):
            return a.cast(self.b, given, DType.BOOL)
        return a.number(self.b, bool(given), DType.BOOL, 1)

    def truths(self, value: Value) -> Value:
        """Return truth values as a result."""
        return value


SPLIT = "leave it out of the exported model, or write it with operators that the guide lists"


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
    entry = row_of(node)
    if entry is None:
        return str(node.target) in (GETITEM, *WITHOUT_RESULT)
    return entry.is_source or not isinstance(entry.floats, Missing)


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
    name = context.program.input_names.get(node.name) or str(node.name)
    return context.graph.add_input(type, name)


def _lower(context: Context, node: Any) -> Result:
    if str(node.target) == GETITEM:
        return _item(context, node)
    folded = _folded(context, node)
    if folded is not None:
        return folded
    entry = row_of(node)
    if entry is None or isinstance(entry.floats, Missing):
        raise _without_form(context, node, None if entry is None else entry.floats)
    try:
        return lowering_of(entry.floats, node)(FpCall(context, node))
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
    results = context.terms[source]
    assert isinstance(results, tuple)
    if index < len(results):
        return results[index]
    if not node.users:
        return results[0]
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
    entry = row_of(node)
    known = entry is not None and entry.is_source
    if not known and not all(_is_fixed(context, source) for source in node.all_input_nodes):
        return None
    tags = [str(tag) for tag in getattr(node.target, "tags", ())]
    if any(tag.endswith("nondeterministic_seeded") for tag in tags):
        return None
    arguments, named = (
        mapped(part, lambda source: _tensor(context, source, known))
        for part in (node.args, node.kwargs)
    )
    results = without_gradient(_out_of_place(node), *arguments, **named)
    if is_tensor(results):
        return Fixed(results.clone())
    return tuple(Fixed(item.clone()) for item in results)


def _out_of_place(node: Any) -> Any:
    """Return a node's operator, or its form that leaves the model's own tensors as they are."""
    return node.target if in_place_of(str(node.target)) is None else operator_of(overload_of(node))


def in_place_of(name: str) -> str | None:
    """Return the operator that computes what one in place does; None for others."""
    kept = functional_name(name) == name or not name.split(".")[1].endswith("_")
    return None if kept else functional_name(name)


def _is_fixed(context: Context, node: Any) -> bool:
    result = context.terms.get(node)
    if isinstance(result, tuple):
        return all(isinstance(term, Fixed) for term in result)
    return isinstance(result, Fixed)


def _tensor(context: Context, node: Any, made_up: bool) -> Any:
    term = context.terms.get(node)
    if isinstance(term, Fixed):
        return term.tensor.detach()
    assert made_up
    return zeros_like(node.meta["val"])
