"""What an operation is made of: operands, attributes, results, element types, shapes.

Each operation is a class in the file of its chapter. Its fields are the definition, once for all:
pyright knows them as typed accessors, the builder types results by them, the verifier checks by
them, patterns and text read them. What an operation computes is in `mizzen.reference`.

Ref: TOSA 1.0.2, 2.3 to 2.18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import new_class
from typing import Any, ClassVar, Generic, Self, TypedDict, TypeVar, Unpack, cast, overload

from mizzen.graph import Attributes, DType, NanMode, Operation, ResizeMode, TensorType, Value

T = TypeVar("T")
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
    """An operand must be a constant and is not one."""


@dataclass(frozen=True)
class Operand(Generic[T]):
    """One operand of a class of operations: a field that is a value, or several.

    element    a type variable of the operation (``in_t``) or how a type is printed (``i8``)
    rank       least and greatest number of dimensions; the greatest is None where only TOSA's
               level bounds it
    constant   whether its value must be known when the graph is compiled
    variadic   whether it stands for any number of operands, at least one
    name       its name in TOSA
    index      its place among the operands
    """

    element: str
    rank: tuple[int, int | None] = (0, None)
    constant: bool = False
    variadic: bool = False
    name: str = field(init=False, default="")
    index: int = field(init=False, default=-1)

    def __set_name__(self, owner: type[Operation], name: str) -> None:
        object.__setattr__(self, "name", name)

    @overload
    def __get__(self, operation: None, owner: type[Operation]) -> Self: ...
    @overload
    def __get__(self, operation: Operation, owner: type[Operation]) -> T: ...
    def __get__(self, operation: Operation | None, owner: type[Operation]) -> Any:
        if operation is None:
            return self
        operands = operation.operands
        return tuple(operands[self.index :]) if self.variadic else operands[self.index]


class _Required:
    """The default of an attribute that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@dataclass(frozen=True)
class Attribute(Generic[T]):
    """One attribute of a class of operations: the type of its value, its default, its name.

    `length` is the number of elements of a tuple that has always as many.
    """

    type: type[T] | tuple[type[T], ...]
    default: T | _Required = REQUIRED
    length: int | None = None
    name: str = field(init=False, default="")

    def __set_name__(self, owner: type[Operation], name: str) -> None:
        object.__setattr__(self, "name", name)

    @overload
    def __get__(self, operation: None, owner: type[Operation]) -> Self: ...
    @overload
    def __get__(self, operation: Operation, owner: type[Operation]) -> T: ...
    def __get__(self, operation: Operation | None, owner: type[Operation]) -> Any:
        return self if operation is None else operation.attributes[self.name]


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
"""Returns the results' shapes, or raises RuleError."""
Infer = Callable[[Sequence[Value], Attributes], tuple[TensorType, ...]]
"""Returns the results' types where no table of element types says, or raises RuleError."""


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
    operands: tuple[Operand[Any], ...]
    attributes: tuple[Attribute[Any], ...]
    results: tuple[tuple[str, str], ...] = ()
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
        fixed = {name for each in self.rows for name in each.attributes}
        for attribute in self.attributes:
            if attribute.default is not REQUIRED:
                self.defaults[attribute.name] = attribute.default
        required = {a.name for a in self.attributes if a.default is REQUIRED}
        object.__setattr__(self, "required", frozenset(required - fixed))
        object.__setattr__(self, "names", frozenset(a.name for a in self.attributes))
        for form in self.rows:
            key = tuple(element_type(operand, form) for operand in self.operands)
            self.by_operands[key] = (*self.by_operands.get(key, ()), form)

    @property
    def variadic(self) -> bool:
        """Whether the last operand stands for any number of operands."""
        return bool(self.operands) and self.operands[-1].variadic

    @property
    def reference(self) -> str:
        """Where the operation is defined."""
        return f"TOSA 1.0, {self.section} {self.kind}"


DEFINITIONS: dict[str, Definition] = {}
"""All operations, by kind; the classes of the chapters add them."""


class Parts(TypedDict, total=False):
    """What a class of operations passes to its definition, and to those of its subclasses."""

    results: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    shapes: Shapes
    infer: Infer
    supports: tuple[Support, ...]
    commutative: bool


def _fields(
    operation: type[Operation],
) -> tuple[tuple[Operand[Any], ...], tuple[Attribute[Any], ...]]:
    """Return the operands and attributes of a class, those of families before its own."""
    operands, attributes = dict[str, Operand[Any]](), dict[str, Attribute[Any]]()
    for base in reversed(operation.__mro__):
        for name, each in vars(base).items():
            if isinstance(each, Operand):
                operands[name] = each
            elif isinstance(each, Attribute):
                attributes[name] = each
    return tuple(operands.values()), tuple(attributes.values())


class TosaOperation(Operation):
    """An operation of TOSA, with a field for each operand and attribute.

    A subclass that is given a kind and the section of TOSA that has it is that operation, and its
    fields are the definition: ``isinstance(operation, Conv2d)`` tells the kind, and then
    ``operation.weight`` is a value and ``operation.stride`` a tuple of int. A subclass
    without a kind is a family, with fields that its members share.
    """

    definition: ClassVar[Definition]
    _parts: ClassVar[Parts] = {}

    def __init_subclass__(cls, kind: str = "", section: str = "", **parts: Unpack[Parts]) -> None:
        cls._parts = {**cls._parts, **parts}
        operands, attributes = _fields(cls)
        for index, operand in enumerate(operands):
            object.__setattr__(operand, "index", index)
        if kind:
            cls.definition = Definition(kind, section, operands, attributes, **cls._parts)
            DEFINITIONS[kind] = cls.definition
            Operation.of_kind[kind] = cls

    @classmethod
    def member(cls, kind: str, section: str, **parts: Unpack[Parts]) -> type[Self]:
        """Return an operation of the family that has no fields of its own."""
        name = kind.title().replace("_", "")
        keywords = {"kind": kind, "section": section, **parts}
        return cast("type[Self]", new_class(name, (cls,), keywords))


PRINTED = {dtype.value: dtype for dtype in DType}


def element_type(operand: Operand[Any], form: Row) -> DType:
    """Return the element type that a row says an operand has."""
    return form.types.get(operand.element) or PRINTED[operand.element]


def tensor(element: str = "in_out_t", rank: int | None = None) -> Operand[Value]:
    """Return an operand of exactly `rank` dimensions, or of any number."""
    return Operand(element, (0, None) if rank is None else (rank, rank))


def ranked(element: str = "in_out_t") -> Operand[Value]:
    """Return an operand of one dimension at least."""
    return Operand(element, (1, None))


def constant(element: str = "in_out_t") -> Operand[Value]:
    """Return an operand of one dimension whose elements are known when the graph is compiled."""
    return Operand(element, (1, 1), constant=True)


def shape() -> Operand[Value]:
    """Return an operand that is a shape: known when the graph is compiled."""
    return constant("shape")


def variadic(element: str = "any", least_rank: int = 0) -> Operand[tuple[Value, ...]]:
    """Return any number of operands."""
    return Operand(element, (least_rank, None), variadic=True)


def integers(
    length: int | None = None, default: tuple[int, ...] | _Required = REQUIRED
) -> Attribute[tuple[int, ...]]:
    """Return an attribute that is a tuple of int."""
    return Attribute(tuple, default, length)


def nan_mode() -> Attribute[NanMode]:
    """Return the attribute that says what becomes of a NaN."""
    return Attribute(NanMode, NanMode.PROPAGATE)


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
