"""A node on its way to operations of TOSA, whichever profile they are of.

What only moves elements, or chooses among them, is written once, for `Call`: a profile says what a
tensor stands for, and how operands come to the type of a result. It must not know a profile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Generic, TypeVar

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.operators import Missing, row_of
from mizzen.frontends.torch.operators.row import Form
from mizzen.frontends.torch.program import kind_of, results_of
from mizzen.graph import Value
from mizzen.ops import Builder

Term = TypeVar("Term")
Move = Callable[[Value], Value]
"""Adds the operations that bring a tensor's elements elsewhere, or choose among them."""

TRAINING = "call `model.eval()` before export"


class Arguments:
    """A node with its arguments by name."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.arguments = _named(node)

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def first(self) -> str:
        """The name of the first argument."""
        return next(iter(self.arguments))

    @property
    def operator(self) -> str:
        """The name of the operator's row: ``mul`` for multiply too."""
        entry = row_of(self.node)
        assert entry is not None
        return entry.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(self.node.meta["val"].shape)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the results."""
        return [tuple(map(int, meta.shape)) for meta in results_of(self.node)]

    @property
    def used(self) -> set[int]:
        """Which of several results are used."""
        return {int(user.args[1]) for user in self.node.users if user.users}

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of an argument."""
        return tuple(self.arguments[name].meta["val"].shape)

    def given(self, name: str) -> bool:
        """Whether an argument is there."""
        return self.arguments.get(name) is not None

    def axis(self, name: str = "dim") -> int:
        """Return an argument that is a dimension of the input, counted from the front."""
        return int(self.arguments[name]) % max(len(self.shape_of(self.first)), 1)

    def axes(self) -> list[int]:
        """Return the dimensions of the input that are named, in order; all of them for none."""
        rank, dims = len(self.shape_of(self.first)), self.arguments.get("dim")
        if dims is None or (not isinstance(dims, int) and not len(dims)):
            return list(range(rank))
        listed = [dims] if isinstance(dims, int) else dims
        return sorted({int(dim) % max(rank, 1) for dim in listed})

    def need(self, holds: bool, reason: str, help: str | None = None) -> None:
        """Refuse the node unless a condition holds."""
        if not holds:
            raise RefusedError(reason, help)


class Call(Arguments, ABC, Generic[Term]):
    """A node that is being lowered; a `Term` is what a tensor stands for in the profile."""

    b: Builder

    @abstractmethod
    def moved(self, move: Move) -> Term:
        """Return the input with its elements moved, or some of them: numbers stay as they are."""

    @abstractmethod
    def parted(self, moves: Sequence[Move]) -> tuple[Term, ...]:
        """Return several tensors that the input's elements are moved to."""

    @abstractmethod
    def itself(self) -> Term:
        """Return the input in the type of the result."""

    @abstractmethod
    def alike(self, operands: Sequence[Any], build: Callable[..., Value]) -> Term:
        """Return the result that `build` makes of operands in the type and scale of the result.

        operands  nodes, or numbers, which become constants of shape [1]
        """

    @abstractmethod
    def truth(self, name: str) -> Value:
        """Return an argument that must be truth values."""

    @abstractmethod
    def truths(self, value: Value) -> Term:
        """Return truth values as a result."""

    @property
    def gives_truths(self) -> bool:
        """Whether the result is truth values."""
        return str(results_of(self.node)[0].dtype) == "torch.bool"


def lowering_of(form: Form, node: Any) -> Callable[[Any], Any]:
    """Return the function that a row names. RefusedError with the reason where there is none."""
    if isinstance(form, Missing):
        raise RefusedError(form.reason.format(kind=kind_of(node)), form.help)
    module, _, name = form.partition(":")
    return getattr(import_module(f"{__package__}.{module}"), name)


def _named(node: Any) -> dict[str, Any]:
    """Return a node's arguments by the names in its schema, with defaults."""
    names = node.target._schema.arguments
    named = {argument.name: argument.default_value for argument in names}
    named.update(zip((argument.name for argument in names), node.args, strict=False))
    named.update(node.kwargs)
    return named
