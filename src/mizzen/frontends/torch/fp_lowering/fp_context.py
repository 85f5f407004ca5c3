"""The state of lowering one program to floating-point operations, and a node on its way there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.call import Call, Move
from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.program import Array, TorchProgram, origin_of, results_of, tensor_type
from mizzen.graph import DType, Graph, Value
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
    absorbed  batch norms that are part of the convolution in front of them
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
        found = WIDTHS.get(given, given)
        if found not in ELEMENTS:
            raise RefusedError(
                f"its elements are {meta.dtype}, which TOSA 1.0 does not compute with",
                "convert the model: `model.float()`, or `.to(torch.int32)` for integers",
            )
        return found

    def value(self, node: Any) -> Value:
        """Return a node's tensor as a value of the graph; a constant is one value for all users."""
        found = self.terms[node]
        assert not isinstance(found, tuple), node
        if isinstance(found, Value):
            return found
        if node not in self._constants:
            self._constants[node] = self.constant(found)
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
        found = self.context.terms[argument] if hasattr(argument, "meta") else None
        return array_of(found.tensor) if isinstance(found, Fixed) else None

    def constant(self, name: str) -> Array:
        """Return an argument that must be a constant of the program."""
        found = self.fixed(name)
        if found is None:
            raise RefusedError(
                f"its {name} is computed from the model's inputs",
                f"make {name} a parameter or a buffer of the module",
            )
        return found

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
        """Return what `build` makes of operands in the type of the result."""
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
