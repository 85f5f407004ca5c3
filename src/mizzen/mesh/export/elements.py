"""Elements of values, each computed where it is wanted: statements of C.

A value's element at a place is asked for, and each operation asks for the elements of its operands
that it needs. So nothing between the operations of a tile is stored. All numbers are of 64 bits
here, as the reference has them; results are cut to their type where TOSA says so.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mizzen.graph import Array, Operation, ResizeMode, Value, integer_range
from mizzen.mesh.export.c_text import Constants, count, integer
from mizzen.mesh.export.pointwise import POINTWISE
from mizzen.mesh.export.views import Place, View
from mizzen.ops import data_layout, image, reduction
from mizzen.ops import tensor as tensor_operators
from mizzen.ops.control_flow import Identity

INDENT = "    "


class Elements:
    """The statements of a function, and the names of what they have computed."""

    def __init__(
        self, sources: Mapping[Value, View], constants: Constants, known: Mapping[Value, str]
    ) -> None:
        """Begin with values in memory, and with values whose wanted element has a name."""
        self.sources = sources
        self.constants = constants
        self.known = known
        self.lines: list[str] = []
        self._depth = 1
        self._count = 0
        self._names: list[dict[tuple[Value, Place], str]] = [{}]

    def say(self, statement: str) -> None:
        """Add a statement."""
        self.lines.append(INDENT * self._depth + statement)

    def fresh(self, prefix: str = "v") -> str:
        """Return a name that nothing has yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Add a block; what is computed in it has no name after it."""
        self.say(f"{head} {{")
        self._depth += 1
        self._names.append({})
        yield
        self._names.pop()
        self._depth -= 1
        self.say("}")

    def at(self, value: Value, place: Place) -> str:
        """Return the name, or the digits, of an element."""
        place = tuple(
            "0u" if extent == 1 else index for extent, index in zip(value.shape, place, strict=True)
        )
        if value in self.known:
            return self.known[value]
        if value.constant is not None:
            return self._constant(value.constant, place)
        for names in self._names:
            if (value, place) in names:
                return names[value, place]
        name = self._loaded(value, place) or self._computed(value, place)
        self._names[-1][value, place] = name
        return name

    def named(self, expression: str, type: str = "int64_t") -> str:
        """Give an expression a name."""
        name = self.fresh()
        self.say(f"const {type} {name} = {expression};")
        return name

    def flat(self, shape: tuple[int, ...], place: Place) -> str:
        """Return the index of an element among all, the last axis the fastest."""
        terms, behind = list[str](), 1
        for extent, index in zip(reversed(shape), reversed(place), strict=True):
            if index != "0u":
                terms.insert(0, f"{index} * {count(behind)}" if behind > 1 else index)
            behind *= extent
        return " + ".join(terms) or "0u"

    def row(self, array: Array, index: str) -> str:
        """Return an element of a constant that has one for all, or one each."""
        if np.all(array == array.reshape(-1)[0]):
            return f"({integer(int(array.reshape(-1)[0]))})"
        return f"{self.constants.name(array)}[{index}]"

    def _constant(self, array: Array, place: Place) -> str:
        return self.row(array, self.flat(array.shape, place))

    def _loaded(self, value: Value, place: Place) -> str | None:
        view = self.sources.get(value)
        if view is None:
            return None
        return self.named(f"mesh_load({view.address(place)}, {count(view.item_bytes)})")

    def _computed(self, value: Value, place: Place) -> str:
        operation = value.producer
        assert operation is not None, "inputs and constants have been found already"
        pointwise = POINTWISE.get(operation.kind)
        if pointwise is not None:
            operands = [
                self.at(each, _broadcast(each, place)) if each.constant is None else ""
                for each in operation.operands
            ]
            return self.named(pointwise(_Parts(self, operation, operands, place)))
        return RULES[type(operation)](self, operation, place)


class _Parts:
    """What a pointwise operation's expression is made of."""

    def __init__(
        self, elements: Elements, operation: Operation, operands: list[str], place: Place
    ) -> None:
        self.elements = elements
        self.operation = operation
        self.operands = operands
        self.place = place

    def operand(self, index: int) -> str:
        """Return an operand's element."""
        value = self.operation.operands[index]
        if value.constant is None:
            return self.operands[index]
        return self.elements.at(value, _broadcast(value, self.place))

    def constant(self, index: int) -> Array:
        """Return an operand that is constant."""
        array = self.operation.operands[index].constant
        assert array is not None, "TOSA wants a constant here"
        return array

    def along(self, index: int) -> str:
        """Return the element of a constant that has one for each channel, or one for all."""
        return self.elements.row(self.constant(index), self.place[-1] if self.place else "0u")

    def table(self, index: int) -> str:
        """Return the name of a constant's array."""
        return self.elements.constants.name(self.constant(index))


def _broadcast(value: Value, place: Place) -> Place:
    """Return the place of an operand that is broadcast; its axes are the result's last ones."""
    return place[len(place) - len(value.shape) :]


def _identity(elements: Elements, operation: Operation, place: Place) -> str:
    return elements.at(operation.operand, place)


def _numbers(value: Value) -> list[int]:
    assert value.constant is not None, "the builder refuses shapes that are not constant"
    return cast("list[int]", value.constant.tolist())


def _moved(index: str, offset: int) -> str:
    return f"({index} + {count(offset)})" if offset else index


def _slice(elements: Elements, operation: Any, place: Place) -> str:
    starts = _numbers(operation.start)
    return elements.at(operation.operand, tuple(map(_moved, place, starts)))


def _transpose(elements: Elements, operation: Any, place: Place) -> str:
    taken = dict(zip(operation.perms, place, strict=True))
    return elements.at(operation.operand, tuple(taken[axis] for axis in range(len(place))))


def _reverse(elements: Elements, operation: Any, place: Place) -> str:
    taken, axis = list(place), operation.axis
    taken[axis] = f"({count(operation.operand.shape[axis] - 1)} - {place[axis]})"
    return elements.at(operation.operand, tuple(taken))


def _tile(elements: Elements, operation: Any, place: Place) -> str:
    shape = operation.operand.shape
    taken = (f"({index} % {count(each)})" for index, each in zip(place, shape, strict=True))
    return elements.at(operation.operand, tuple(taken))


def _reshape(elements: Elements, operation: Any, place: Place) -> str:
    given, shape = operation.operand.shape, operation.result.shape
    if [each for each in given if each > 1] == [each for each in shape if each > 1]:
        indices = iter([index for index, extent in zip(place, shape, strict=True) if extent > 1])
        taken = [next(indices) if extent > 1 else "0u" for extent in given]
        return elements.at(operation.operand, tuple(taken))
    flat = elements.named(elements.flat(shape, place), "uint32_t")
    taken, behind = list[str](), 1
    for extent in reversed(given):
        taken.insert(0, f"({flat} / {count(behind)} % {count(extent)})")
        behind *= extent
    return elements.at(operation.operand, tuple(taken))


def _concat(elements: Elements, operation: Any, place: Place) -> str:
    result, axis, first = elements.fresh(), operation.axis, 0
    elements.say(f"int64_t {result};")
    for number, value in enumerate(operation.operands):
        behind = first + value.shape[axis]
        is_last = number + 1 == len(operation.operands)
        head = "else" if number else ""
        if not is_last:
            head = f"{head} if ({place[axis]} < {count(behind)})".strip()
        taken = list(place)
        taken[axis] = f"({place[axis]} - {count(first)})" if first else place[axis]
        with elements.block(head):
            elements.say(f"{result} = {elements.at(value, tuple(taken))};")
        first = behind
    return result


def _pad(elements: Elements, operation: Any, place: Place) -> str:
    before = _numbers(operation.padding)[::2]
    (around,) = np.asarray(operation.pad_const.constant).reshape(-1).tolist()
    result = elements.fresh()
    elements.say(f"int64_t {result} = {integer(int(around))};")
    inside, taken = list[str](), list[str]()
    spans = zip(place, before, operation.operand.shape, operation.result.shape, strict=True)
    for index, offset, extent, whole in spans:
        inside += _within(index, offset, extent, whole)
        taken.append(f"({index} - {count(offset)})" if offset else index)
    with elements.block(f"if ({' && '.join(inside) or '1'})"):
        elements.say(f"{result} = {elements.at(operation.operand, tuple(taken))};")
    return result


def _within(index: str, offset: int, extent: int, whole: int) -> list[str]:
    """Return the conditions for an index of `whole` to lie in what begins at `offset`."""
    conditions = [f"{index} >= {count(offset)}"] if offset else []
    return (
        [*conditions, f"{index} < {count(offset + extent)}"]
        if offset + extent < whole
        else conditions
    )


@dataclass(frozen=True)
class _Samples:
    """For each place of a result along an axis: the samples around it, its way past the first.

    past  numerator of that way, of which `unit` is the denominator
    """

    before: Array
    after: Array
    past: Array
    unit: int

    @property
    def nearest(self) -> Array:
        """The nearer sample; of two that are as near, the later one."""
        return np.where(2 * self.past >= self.unit, self.after, self.before)

    @property
    def weighed(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Both samples, each with its weight."""
        return (self.before, self.unit - self.past), (self.after, self.past)


def _samples(size: int, new_size: int, unit: int, step: int, offset: int) -> _Samples:
    places = np.arange(new_size) * step + offset
    index = places // unit
    before, after = np.maximum(index, 0), np.minimum(index + 1, size - 1)
    return _Samples(before, after, places - index * unit, unit)


def _resize(elements: Elements, operation: Any, place: Place) -> str:
    (y_unit, y_step, x_unit, x_step), (down, right) = map(_numbers, operation.operands[1:3])
    _, height, width, _ = operation.operand.shape
    _, new_height, new_width, _ = operation.result.shape
    lines = _samples(height, new_height, y_unit, y_step, down)
    columns = _samples(width, new_width, x_unit, x_step, right)
    batch, y, x, channel = place

    def sample(line: Array, column: Array) -> str:
        indices = (f"(uint32_t){elements.row(*pair)}" for pair in ((line, y), (column, x)))
        return elements.at(operation.operand, (batch, *indices, channel))

    if operation.mode is ResizeMode.NEAREST:
        return sample(lines.nearest, columns.nearest)
    terms = [
        f"{sample(line, column)} * {elements.row(by_row, y)} * {elements.row(by_column, x)}"
        for line, by_row in lines.weighed
        for column, by_column in columns.weighed
    ]
    return elements.named(" + ".join(terms))


def _gather(elements: Elements, operation: Any, place: Place) -> str:
    values, indices = operation.operands
    index = elements.named(f"(uint32_t){elements.at(indices, place[:2])}", "uint32_t")
    return elements.at(values, (place[0], index, place[2]))


def _pool(elements: Elements, operation: Any, place: Place) -> str:
    is_average = isinstance(operation, tensor_operators.AvgPool2d)
    zero_points = [_numbers(value)[0] for value in operation.operands[1:]]
    total, counted = elements.fresh(), elements.fresh("n")
    least, greatest = integer_range(operation.result.dtype)
    elements.say(f"int64_t {total} = {0 if is_average else integer(least)};")
    if is_average:
        elements.say(f"uint32_t {counted} = 0u;")
    with _window(elements, operation, place) as taken:
        value = elements.at(operation.operand, taken)
        if is_average:
            elements.say(f"{total} += {value} - ({integer(zero_points[0])});")
            elements.say(f"{counted}++;")
        else:
            elements.say(f"{total} = mesh_greatest({total}, {value});")
    if not is_average:
        return total
    average = f"mesh_average({total}, {counted}) + ({integer(zero_points[1])})"
    return elements.named(f"mesh_clamp({average}, {integer(least)}, {integer(greatest)})")


@contextmanager
def _window(elements: Elements, operation: Any, place: Place) -> Generator[Place]:
    """Loop over a pooling's window, padding left out."""
    line, column, y, x = (elements.fresh(prefix) for prefix in ("r", "c", "y", "x"))
    (height, width), (down, right) = operation.kernel, operation.stride
    top, _, left, _ = operation.pad
    _, lines, columns, _ = operation.operand.shape
    with (
        elements.block(f"for (uint32_t {line} = 0u; {line} < {count(height)}; {line}++)"),
        elements.block(f"for (uint32_t {column} = 0u; {column} < {count(width)}; {column}++)"),
    ):
        elements.say(f"const uint32_t {y} = {place[1]} * {count(down)} + {line};")
        elements.say(f"const uint32_t {x} = {place[2]} * {count(right)} + {column};")
        inside = [
            *([f"{y} >= {count(top)}"] if top else []),
            f"{y} < {count(top + lines)}",
            *([f"{x} >= {count(left)}"] if left else []),
            f"{x} < {count(left + columns)}",
        ]
        with elements.block(f"if ({' && '.join(inside)})"):
            yield (place[0], f"({y} - {count(top)})", f"({x} - {count(left)})", place[3])


REDUCTIONS = {
    "REDUCE_SUM": ("0", "{total} + {value}"),
    "REDUCE_MAX": (None, "mesh_greatest({total}, {value})"),
    "REDUCE_MIN": (None, "mesh_least({total}, {value})"),
    "REDUCE_ALL": ("1", "{total} != 0 && {value} != 0"),
    "REDUCE_ANY": ("0", "{total} != 0 || {value} != 0"),
}
"""What a reduction begins with, None for the first element, and how it takes the next."""


def _reduce(elements: Elements, operation: Any, place: Place) -> str:
    begin, step = REDUCTIONS[operation.kind]
    axis: int = operation.axis
    taken, index = list(place), elements.fresh("r")
    if begin is None:
        taken[axis] = "0u"
        begin = elements.at(operation.operand, tuple(taken))
    total = elements.fresh()
    elements.say(f"int64_t {total} = {begin};")
    extent = count(operation.operand.shape[axis])
    taken[axis] = index
    with elements.block(f"for (uint32_t {index} = 0u; {index} < {extent}; {index}++)"):
        value = elements.at(operation.operand, tuple(taken))
        elements.say(f"{total} = {step.format(total=total, value=value)};")
    return total


def _argmax(elements: Elements, operation: Any, place: Place) -> str:
    axis: int = operation.axis
    index, best, result = elements.fresh("r"), elements.fresh(), elements.fresh()
    taken = [*place[:axis], "0u", *place[axis:]]
    elements.say(f"int64_t {best} = {elements.at(operation.operand, tuple(taken))};")
    elements.say(f"int64_t {result} = 0;")
    taken[axis] = index
    extent = count(operation.operand.shape[axis])
    with elements.block(f"for (uint32_t {index} = 0u; {index} < {extent}; {index}++)"):
        value = elements.at(operation.operand, tuple(taken))
        with elements.block(f"if ({value} > {best})"):
            elements.say(f"{best} = {value};")
            elements.say(f"{result} = {index};")
    return result


LOOPS = (tensor_operators.Pool2d, reduction.Reduction, tensor_operators.Argmax)
"""Operations of which each element takes many."""

RULES: dict[type[Operation], Any] = {
    Identity: _identity,
    data_layout.Slice: _slice,
    data_layout.Transpose: _transpose,
    data_layout.Reverse: _reverse,
    data_layout.Tile: _tile,
    data_layout.Reshape: _reshape,
    data_layout.Concat: _concat,
    data_layout.Pad: _pad,
    data_layout.Gather: _gather,
    image.Resize: _resize,
    tensor_operators.AvgPool2d: _pool,
    tensor_operators.MaxPool2d: _pool,
    tensor_operators.Argmax: _argmax,
    **{Operation.of_kind[kind]: _reduce for kind in REDUCTIONS},
}
"""How operations besides the pointwise ones give an element."""
