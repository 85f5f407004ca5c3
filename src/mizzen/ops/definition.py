"""What an operation is made of: operands, attributes, results, element types, shapes.

Each chapter of TOSA's operators has a file of definitions here, under the chapter's name. A
definition is data: the builder types results by it, the verifier checks by it, the text form and
the documentation read it. What an operation computes is in `mizzen.reference`.

Ref: TOSA 1.0.2, 2.3 to 2.18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any

from mizzen.graph import Attributes, DType, TensorType, Value
from mizzen.ops.attributes import NanMode, ResizeMode

Shape = tuple[int, ...]


class Support(Enum):
    """A profile or an extension of TOSA 1.0; the value is its name there. Ref: TOSA 1.0, 1.6."""

    PRO_INT = "PRO-INT"
    PRO_FP = "PRO-FP"
    EXT_INT4 = "EXT-INT4"
    EXT_INT16 = "EXT-INT16"
    EXT_BF16 = "EXT-BF16"
    EXT_FFT = "EXT-FFT"
    EXT_CONTROLFLOW = "EXT-CONTROLFLOW"
    EXT_VARIABLE = "EXT-VARIABLE"


class RuleError(ValueError):
    """An operand or attribute is not what the operation needs: what must hold, and what came."""


class NotConstantError(RuleError):
    """An operand must be a constant and is none."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: its name in TOSA, whose element type it has, its rank.

    element    a type variable of the operation (``in_t``) or how a type is printed (``i8``)
    rank       least and greatest number of dimensions; the greatest is None where only TOSA's
               level bounds it
    constant   whether its value must be known when the graph is compiled
    variadic   whether it stands for any number of operands, at least one
    """

    name: str
    element: str
    rank: tuple[int, int | None] = (0, None)
    constant: bool = False
    variadic: bool = False


class _Required:
    """The default of an attribute that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its name in TOSA's schema, the type of its value, its default.

    `length` is the number of elements of a tuple that has always as many.
    """

    name: str
    type: type[Any] | tuple[type[Any], ...]
    default: object = REQUIRED
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One combination of element types that the operation has, and who has it.

    types       type variable to type
    attributes  values that attributes have in this combination (``acc_type``)
    supports    profiles and extensions; any one of them is enough
    """

    types: Mapping[str, DType]
    attributes: Mapping[str, object]
    supports: tuple[Support, ...]


Shapes = Callable[[Sequence[Value], Attributes], tuple[Shape, ...]]
"""Gives the results' shapes, or raises RuleError."""
Infer = Callable[[Sequence[Value], Attributes], tuple[TensorType, ...]]
"""Gives the results' types where no table of element types does, or raises RuleError."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One of TOSA's operations.

    results      names and type variables of the results
    shapes       how the results' shapes follow, where element types are in `rows`
    infer        how the results' types follow, for operations without `rows`
    supports     profiles and extensions that have it, for operations without `rows`
    commutative  whether the first two operands may change places: the result stays the same
    """

    kind: str
    section: str
    operands: tuple[Operand, ...]
    results: tuple[tuple[str, str], ...]
    attributes: tuple[Attribute, ...] = ()
    rows: tuple[Row, ...] = ()
    shapes: Shapes | None = None
    infer: Infer | None = None
    supports: tuple[Support, ...] = ()
    commutative: bool = False
    defaults: Attributes = field(init=False, default_factory=dict[str, Any])
    required: frozenset[str] = field(init=False, default=frozenset())
    names: frozenset[str] = field(init=False, default=frozenset())
    by_operands: dict[tuple[DType, ...], tuple[Row, ...]] = field(
        init=False, default_factory=dict[tuple[DType, ...], tuple[Row, ...]]
    )
    """The rows by the element types of the operands; of one only, if it is variadic."""

    def __post_init__(self) -> None:
        fixed = {name for row in self.rows for name in row.attributes}
        for attribute in self.attributes:
            if attribute.default is not REQUIRED:
                self.defaults[attribute.name] = attribute.default
        required = {a.name for a in self.attributes if a.default is REQUIRED}
        object.__setattr__(self, "required", frozenset(required - fixed))
        object.__setattr__(self, "names", frozenset(a.name for a in self.attributes))
        for row in self.rows:
            key = tuple(element_type(operand, row) for operand in self.operands)
            self.by_operands[key] = (*self.by_operands.get(key, ()), row)

    @property
    def variadic(self) -> bool:
        """Whether the last operand stands for any number of operands."""
        return bool(self.operands) and self.operands[-1].variadic

    @property
    def reference(self) -> str:
        """Where the operation is defined."""
        return f"TOSA 1.0, {self.section} {self.kind}"


PRINTED = {dtype.value: dtype for dtype in DType}


def element_type(operand: Operand, row: Row) -> DType:
    """Return the element type that a row says an operand has."""
    return row.types.get(operand.element) or PRINTED[operand.element]


def tensor(name: str, element: str = "in_out_t", rank: int | None = None) -> Operand:
    """Return an operand of exactly `rank` dimensions, or of any number."""
    return Operand(name, element, (0, None) if rank is None else (rank, rank))


def ranked(name: str, element: str = "in_out_t") -> Operand:
    """Return an operand of one dimension at least."""
    return Operand(name, element, (1, None))


def constant(name: str, element: str) -> Operand:
    """Return an operand of one dimension whose elements are known when the graph is compiled."""
    return Operand(name, element, (1, 1), constant=True)


def shape(name: str) -> Operand:
    """Return an operand that is a shape: known when the graph is compiled."""
    return Operand(name, "shape", (1, 1), constant=True)


def integers(name: str, length: int | None = None) -> Attribute:
    """Return an attribute that is a tuple of int."""
    return Attribute(name, tuple, length=length)


AXIS = Attribute("axis", int)
NAN_MODE = Attribute("nan_mode", NanMode, NanMode.PROPAGATE)
LOCAL_BOUND = Attribute("local_bound", bool, False)
ACC_TYPE = Attribute("acc_type", DType)

IN_OUT = (("output", "in_out_t"),)
OUT = (("output", "out_t"),)


def table(columns: str, rows: str) -> tuple[Row, ...]:
    """Read element types as TOSA's tables have them, one combination a line.

    A line has the profiles and extensions (``PRO-INT/PRO-FP``), then one entry a column. A column
    that starts with ``@`` is an attribute.
    """
    names = columns.split()
    return tuple(_row(names, line.split()) for line in rows.strip().splitlines())


def _row(names: list[str], cells: list[str]) -> Row:
    supports, *entries = cells
    pairs = list(zip(names, entries, strict=True))
    types = {name: PRINTED[entry] for name, entry in pairs if name[0] != "@"}
    attributes = {name[1:]: _value(entry) for name, entry in pairs if name[0] == "@"}
    return Row(types, attributes, tuple(Support(name) for name in supports.split("/")))


def _value(entry: str) -> object:
    if entry in PRINTED:
        return PRINTED[entry]
    return ResizeMode(entry)


def chapter(number: int, *definitions: Callable[[str], Definition]) -> tuple[Definition, ...]:
    """Number the definitions of a chapter in TOSA's order: 2.3 gives 2.3.1, 2.3.2, ..."""
    return tuple(make(f"2.{number}.{index}") for index, make in zip(count(1), definitions))


def define(kind: str, *operands: Operand, **parts: Any) -> Callable[[str], Definition]:
    """Return a definition that lacks only its section; see `Definition` for the parts."""
    return lambda section: Definition(kind, section, operands, **parts)


def known(value: Value, name: str) -> Shape:
    """Return the elements of a constant operand of integers; raises NotConstantError."""
    array = value.constant
    if array is None:
        raise NotConstantError(f"{name} must be a constant")
    return tuple(map(int, array.tolist()))


def same(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the first operand's shape."""
    return (operands[0].type.shape,)


def broadcast(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the shape that two operands broadcast to. Ref: TOSA 1.0, 1.11.3 Broadcasting."""
    return (broadcast_shape(operands[0].type.shape, operands[1].type.shape),)


def broadcast_shape(a: Shape, b: Shape) -> Shape:
    """Return the common shape: of one rank, in every dimension equal or one of them 1."""
    if a == b:
        return a
    if len(a) != len(b):
        raise RuleError(f"operands must have one rank to broadcast, and have {a} and {b}")
    if any(x not in (y, 1) and y != 1 for x, y in zip(a, b, strict=True)):
        raise RuleError(f"dimensions must be equal or 1 to broadcast, and are {a} and {b}")
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))


def axis_of(operands: Sequence[Value], attributes: Attributes) -> int:
    """Return the attribute `axis`, a dimension of the first operand."""
    axis: int = attributes["axis"]
    if not 0 <= axis < len(operands[0].type.shape):
        raise RuleError(f"axis must be a dimension of {operands[0].type.shape}, and is {axis}")
    return axis
