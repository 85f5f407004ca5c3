"""Change a graph so that defects of the compiler do not show; what it computes stays the same.

Biases are told apart: operations with the same weights and scales get the bias of the first of
them, since the compiler takes no notice of biases when it looks for what it has encoded. On
Ethos-U85 a CLAMP which changes nothing parts operations that the compiler would wrongly join, and
sums of 16-bit numbers take 32 bits. On
Ethos-U55 and U65 one of two operands that both broadcast is repeated first.

Ref: Vela 5.2.0, found by running what it compiled and comparing with TOSA's reference model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import prod

import numpy as np

from mizzen.graph import Array, DType, Graph, NanMode, Operation, Value, integer_range
from mizzen.ops.builder import reshaped
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import Concat, Pad, Reshape, Reverse, Scatter, Slice, Tile, Transpose
from mizzen.ops.elementwise import Add, Binary, Clamp, Maximum, Minimum, Mul, Select, Sub, Table
from mizzen.ops.reduction import ReduceMax, ReduceMin, ReduceProduct, ReduceSum
from mizzen.ops.tensor import (
    AvgPool2d,
    Conv2d,
    Conv3d,
    DepthwiseConv2d,
    Matmul,
    MaxPool2d,
    TransposeConv2d,
    Weighted,
)
from mizzen.ops.type_conversion import Rescale
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.vela.sums import widen_sums
from mizzen.targets.ethos_u.vela.transpositions import cut_transpositions

MISPLACED = (ReduceMax, TransposeConv2d)
"""Operations whose result, where it is a part of a larger tensor, the compiler writes at the
start of that tensor, or with that tensor's size."""

SUMS = (Add, Sub)
ELEMENTWISE = (*SUMS, Maximum, Minimum, Mul)
"""Operations that can rescale their operands on the way."""

WINDOWED = (AvgPool2d, Conv2d, DepthwiseConv2d, MaxPool2d)

FINISHED = (Conv2d, Conv3d, DepthwiseConv2d, Matmul, ReduceSum)
"""Operations that rescale their result on the way; other RESCALEs are operations of their own,
which are misplaced."""

HEADROOM = {DType.INT8: 2.0**19, DType.INT16: 2.0**14}
"""The greater scale of two operands of a sum that are scaled differently on the way."""

WHOLE = 2.0**14
"""The greatest whole scale up to which both operands of a sum are scaled on the way, as if their
scales were equal."""

CARRIERS = (Identity, Rescale)
"""Operations that the compiler makes part of what gives their operand."""

PLACES = (Concat, Pad, Reshape, Scatter, Tile)
"""Operations whose operand becomes a part of a larger tensor, or one of another shape."""

MOVES = (Concat, Pad, Slice, Tile)
"""Operations that move parts of tensors."""


REDUCTIONS = (ReduceMax, ReduceMin, ReduceProduct, ReduceSum)
"""Of one element they are nothing, and the compiler rescales what they give once too often."""


def avoid_defects(graph: Graph, arch: Arch) -> tuple[Operation, ...]:
    """Change what the compiler would get wrong; return the operations where nothing helps.

    Operations are parted from those that move parts of tensors, where the compiler would make one
    of both and lose the place of the part. A CLAMP that changes nothing does it; the compiler
    computes it on the way, or in a pass of its own. REDUCE_MIN, which is many operations for the
    compiler, is parted from everything.
    """
    if arch is Arch.U85:
        widen_sums(graph)
    else:
        repeat_operands(graph)
        cut_transpositions(graph)
    for operation in graph:
        if not operation.operands:
            continue
        if isinstance(operation, REDUCTIONS) and operation.operand.shape == operation.result.shape:
            _pass_on(graph, operation)
            continue
        if isinstance(operation, ReduceMin) and operation.result.dtype in LIMITED:
            clamp_uses(graph, operation.result)
            alone = clamped(graph, operation.operand, operation)
            graph.set_operand(operation, 0, alone)
        is_part = _is_part(operation.result) and not _begins(operation, graph.outputs)
        if is_part and _is_misplaced(operation):
            _part(graph, operation)
        if _loses_place(operation) and _is_moved(operation.operand):
            clamp_uses(graph, operation.operand)
        if isinstance(operation, Table) and operation.result.dtype is DType.INT8:
            _part_table(graph, operation)
    if arch is Arch.U85:
        part_functions(graph)  # the CLAMPs above are functions, too
    confused = tuple(operation for operation in graph if _is_confused(operation))
    return (*confused, *tell_biases_apart(graph))


def repeat_operands(graph: Graph) -> None:
    """Repeat one of two operands that both broadcast: those machines broadcast the second only.

    The compiler adds zeros to the first to repeat it, and takes them for another shape where a
    RESHAPE made the operands. The larger is repeated, before it is rescaled: that copies least.
    """
    for operation in tuple(graph):
        if not isinstance(operation, Binary | Mul):
            continue
        shape, operands = operation.result.shape, operation.operands[:2]
        if any(operand.shape == shape for operand in operands):
            continue
        index = 0 if prod(operands[0].shape) >= prod(operands[1].shape) else 1
        graph.set_operand(operation, index, _repeated(graph, operands[index], operation))


def _repeated(graph: Graph, value: Value, operation: Operation) -> Value:
    """Return a value in the shape of an operation's result."""
    shape, rescale = operation.result.shape, value.producer
    if isinstance(rescale, Reshape):
        rescale = rescale.operand.producer
    type = value.type.with_shape(shape)
    if isinstance(rescale, Rescale) and not rescale.per_channel:
        narrow = reshaped(graph, operation, rescale.input, value.shape)
        operands = (_repeated(graph, narrow, operation), *rescale.operands[1:])
        return graph.add_beside(rescale, rescale.kind, operands, type, rescale.attributes)
    counts = [whole // extent for whole, extent in zip(shape, value.shape, strict=True)]
    operands = (value, graph.constant(counts, DType.SHAPE))
    return graph.add_beside(operation, "TILE", operands, type)


def _is_part(value: Value) -> bool:
    """Whether the value becomes, as it is, a part of a tensor or one of another shape."""
    return any(
        isinstance(user, PLACES) or (isinstance(user, CARRIERS) and _is_part(user.result))
        for user in value.uses
    )


def _begins(operation: Operation, outputs: Sequence[Value]) -> bool:
    """Whether a transposed convolution, rescaled, is nothing but the start of channels joined.

    The compiler writes it at the start of the tensor, which is then right. Only what CONV2D reads
    counts: another operation could make the whole a part of yet another tensor.
    """
    result = operation.result
    if len(result.uses) != 1 or result in outputs:
        return False
    (user,) = result.uses
    if isinstance(operation, TransposeConv2d):
        return isinstance(user, Rescale) and _begins(user, outputs)
    producer = operation.operand.producer if isinstance(operation, Rescale) else None
    return (
        producer is not None
        and isinstance(producer, TransposeConv2d)
        and isinstance(user, Concat)
        and user.axis == len(result.shape) - 1
        and result.shape[0] == 1
        and result.dtype is DType.INT8
        and [place for place, part in enumerate(user.operands) if part is result] == [0]
        and user.result not in outputs
        and all(isinstance(each, Conv2d) for each in user.result.uses)
    )


def _is_misplaced(operation: Operation) -> bool:
    """Whether the compiler makes several operations of it, or one that takes the whole tensor."""
    match operation:
        case DepthwiseConv2d():
            *_, multiplier = operation.weight.shape
            return multiplier > 1
        case Rescale():
            return not _is_finish(operation)
        case _:
            return isinstance(operation, MISPLACED)


def _is_finish(rescale: Rescale) -> bool:
    """Whether a RESCALE is done on the way by what gives its operand."""
    producer = rescale.input.producer
    if rescale.input.dtype in LIMITED:
        return True  # it is one operation, whose place is right
    if producer is None:
        return False
    if isinstance(producer, ELEMENTWISE):
        exact = isinstance(producer, (*SUMS, Mul)) or _scale(rescale) == 1.0
        return exact and _rescales_operands(producer)
    return isinstance(producer, FINISHED)


def _loses_place(operation: Operation) -> bool:
    """Whether the compiler reads the operand where it is not, if it is made of parts."""
    if operation.operand.dtype not in LIMITED:
        return False
    if isinstance(operation, Rescale) and operation.result.dtype is DType.INT32:
        users = tuple(operation.result.uses)
        return len(users) != 1 or not _rescales_operands(users[0])
    if isinstance(operation, WINDOWED) and operation.operand.shape[0] > 1:
        return True  # of several images each is an operation
    if isinstance(operation, AvgPool2d):
        return operation.result.dtype is DType.INT16
    return _is_misplaced(operation)


def _rescales_operands(operation: Operation) -> bool:
    """Whether the compiler rescales the operands of an operation on the way."""
    operands = operation.operands[:2]
    if not isinstance(operation, ELEMENTWISE) or not all(map(_is_rescaled_alone, operands)):
        return False
    rescales = [each.producer for each in operands if isinstance(each.producer, Rescale)]
    low, high = sorted(map(_scale, rescales))
    dtypes = {rescale.input.dtype for rescale in rescales}
    if len(dtypes) != 1:
        return False
    if not isinstance(operation, SUMS):
        return low == high == 1.0
    (dtype,) = dtypes
    if high == HEADROOM.get(dtype):
        return low < high or high <= WHOLE
    return low == high <= WHOLE and low.is_integer()


def _is_rescaled_alone(value: Value) -> bool:
    """Whether a value is what a RESCALE gives to only one operation."""
    producer = value.producer
    return producer is not None and isinstance(producer, Rescale) and len(value.uses) == 1


def _is_confused(operation: Operation) -> bool:
    """Whether the compiler adds numbers of two scales as if they had the same."""
    operands = operation.operands
    if not isinstance(operation, SUMS) or not all(map(_is_rescaled_alone, operands)):
        return False
    rescales = [each.producer for each in operands if isinstance(each.producer, Rescale)]
    low, high = sorted(map(_scale, rescales))
    if low == high or high > WHOLE or high in {HEADROOM.get(r.input.dtype) for r in rescales}:
        return False
    return low >= 1 and low.is_integer() and high.is_integer()


def _scale(rescale: Rescale) -> float:
    """Return the scale of a RESCALE; 0 where it has several, or they are not known."""
    multiplier, shift = rescale.multiplier.constant, rescale.shift.constant
    if multiplier is None or shift is None or rescale.per_channel:
        return 0.0
    return float(np.ldexp(float(multiplier[0]), -int(shift[0])))


def _is_of_several(value: Value) -> bool:
    """Whether several operations of the compiler give the value, of which it makes a TABLE part.

    It puts the table outside the shared buffer of Ethos-U55-32 and 64 then.
    """
    producer = value.producer
    if producer is None:
        return False
    if isinstance(producer, CARRIERS):
        return _is_of_several(producer.operand)
    return isinstance(producer, Transpose) or _is_misplaced(producer)


def _is_moved(value: Value) -> bool:
    """Whether the value is made of parts, or a part, of other tensors."""
    producer = value.producer
    if producer is None:
        return False
    if isinstance(producer, (Identity, Reshape)) or _keeps_order(producer):
        return _is_moved(producer.operand)
    return isinstance(producer, MOVES)


def _keeps_order(operation: Operation) -> bool:
    """Whether it is a TRANSPOSE that only moves dimensions of one element."""
    if not isinstance(operation, Transpose):
        return False
    shape = operation.input1.shape
    longer = [axis for axis in operation.perms if shape[axis] > 1]
    return longer == sorted(longer)


def _part(graph: Graph, operation: Operation) -> None:
    """Put a CLAMP behind the operation, or behind the rescale of what it accumulates."""
    value = operation.result
    if value.dtype in LIMITED:
        clamp_uses(graph, value)
        return
    for user in tuple(value.uses):
        if isinstance(user, Rescale) and _is_part(user.result):
            _part(graph, user)


def _part_table(graph: Graph, table: Table) -> None:
    value = table.input1
    if _is_of_several(value):
        graph.set_operand(table, 0, clamped(graph, value, table))


def _pass_on(graph: Graph, operation: Operation) -> None:
    """Take an operation out that gives what it takes."""
    value = operation.operand
    if operation.result in graph.outputs:
        value = graph.add_beside(operation, "IDENTITY", [value], value.type)
        value.name, operation.result.name = operation.result.name, ""
    graph.replace(operation.result, value)
    graph.erase(operation)


def tell_biases_apart(graph: Graph) -> tuple[Weighted, ...]:
    """Make weights different by their zero points; return operations without room for that."""
    alike: dict[object, list[Weighted]] = defaultdict(list)
    for operation in graph:
        if isinstance(operation, Weighted) and operation.weight.constant is not None:
            alike[_encoded(operation)].append(operation)
    wrong: list[Weighted] = []
    for operations in alike.values():
        first, *others = _by_bias(operations)
        free = _free_zero_points(first[0])
        for same, zero_point in zip(others, free, strict=False):
            _move_zero_point(graph, same, zero_point)
        wrong += [operation for same in others[len(free) :] for operation in same]
    return tuple(wrong)


def _encoded(operation: Weighted) -> object:
    """Return what the compiler knows encoded weights by: their contents and scales."""
    weights, zero_point = operation.weight.constant, operation.weight_zp.constant
    assert weights is not None
    offset = None if zero_point is None else zero_point.tobytes()
    scales = tuple(_scales(user) for user in operation.result.uses)
    return operation.kind, weights.shape, weights.tobytes(), offset, scales


def _scales(user: Operation) -> object:
    """Return the scales of a RESCALE as numbers, since the same has several multipliers."""
    if not isinstance(user, Rescale):
        return None
    multiplier, shift = user.multiplier.constant, user.shift.constant
    if multiplier is None or shift is None:
        return None
    return np.ldexp(multiplier.astype(np.float64), -shift.astype(np.int64)).tobytes()


def _by_bias(operations: list[Weighted]) -> list[list[Weighted]]:
    """Gather the operations that have one bias."""
    found: dict[object, list[Weighted]] = defaultdict(list)
    for operation in operations:
        contents = operation.bias.constant
        found[operation.bias if contents is None else contents.tobytes()].append(operation)
    return list(found.values())


def _free_zero_points(operation: Weighted) -> list[int]:
    """Return the zero points that INT8 weights have room for besides their own, nearest first."""
    if operation.weight.dtype is not DType.INT8:
        return []
    weights, own = _constant(operation.weight), int(_constant(operation.weight_zp)[0])
    low, high = integer_range(DType.INT8)
    least = max(low, own + low - int(weights.min()))
    greatest = min(high, own + high - int(weights.max()))
    others = set(range(least, greatest + 1)) - {own}
    return sorted(others, key=lambda other: (abs(other - own), other))


def _constant(value: Value) -> Array:
    values = value.constant
    assert values is not None
    return values


def _move_zero_point(graph: Graph, operations: list[Weighted], zero_point: int) -> None:
    """Change the zero point of weights, and move them along."""
    first = operations[0]
    weights, own = _constant(first.weight), int(_constant(first.weight_zp)[0])
    moved = (weights.astype(np.int16) + (zero_point - own)).astype(np.int8)
    origin, group = first.origin, first.group
    changed = graph.constant(moved, DType.INT8, origin=origin, group=group)
    offset = graph.constant([zero_point], DType.INT8, origin=origin, group=group)
    for operation in operations:
        graph.set_operand(operation, Weighted.weight.index, changed)
        graph.set_operand(operation, Weighted.weight_zp.index, offset)


LIMITED = (DType.INT8, DType.INT16)
"""Types that CLAMP has."""


def clamp_uses(graph: Graph, value: Value) -> None:
    """Have everything that takes a value take it through a CLAMP that changes nothing."""
    through = clamped(graph, value, value.producer)
    name, value.name = value.name, ""
    graph.replace(value, through)
    assert through.producer is not None
    graph.set_operand(through.producer, 0, value)
    through.name = name


def clamped(graph: Graph, value: Value, place: Operation | None) -> Value:
    """Return a value through a CLAMP that changes nothing, as part of an operation's place."""
    low, high = integer_range(value.dtype)
    attributes = {"min_val": low, "max_val": high, "nan_mode": NanMode.PROPAGATE}
    origin, group = (place.origin, place.group) if place else (None, None)
    clamp = graph.add("CLAMP", [value], [value.type], attributes, origin=origin, group=group)
    return clamp.result


FUNCTIONS = (Clamp, Table)
"""Operations that the compiler makes part of what gives their operand."""

TURNS = (Reverse, Transpose)
"""Operations that the NPU does while it writes a result."""

U85_CARRIERS = (Identity, Rescale, Reshape)
"""Operations that need not be operations of the NPU."""

SELECTIONS = (MaxPool2d, Select)
"""Operations whose result keeps the limits of its type when it is rescaled to another."""


def part_functions(graph: Graph) -> None:
    """Change what the compiler would get wrong on Ethos-U85; what it computes stays the same.

    A function, then another order of elements, then a function again: the compiler makes one
    operation of all, which has one of the functions only. What selects elements and is rescaled to
    a wider type: it makes one operation of both, which saturates at the narrow type's limits.
    """
    for operation in graph:
        if isinstance(operation, FUNCTIONS):
            _part_function(graph, operation)
        elif isinstance(operation, Rescale) and _is_selected(operation):
            _take_apart(graph, operation)


def _take_apart(graph: Graph, operation: Operation) -> None:
    graph.set_operand(operation, 0, clamped(graph, operation.operand, operation))


def _part_function(graph: Graph, operation: Operation) -> None:
    """Part two functions from what turns the one's result for the other.

    With a CLAMP on one side only, the compiler loses limits, or crashes.
    """
    first_turn, producer = None, operation.operand.producer
    while producer is not None and isinstance(producer, (*TURNS, *U85_CARRIERS)):
        first_turn = producer if isinstance(producer, TURNS) else first_turn
        producer = producer.operand.producer
    if first_turn is None or producer is None or not isinstance(producer, FUNCTIONS):
        return
    if first_turn.operand.dtype in LIMITED:
        _take_apart(graph, first_turn)
    _take_apart(graph, operation)


def _is_selected(rescale: Rescale) -> bool:
    """Whether what is rescaled to another type is selected from the elements of tensors."""
    value = rescale.input
    if value.dtype not in LIMITED or value.dtype is rescale.result.dtype:
        return False
    producer = value.producer
    while producer is not None and isinstance(producer, (*TURNS, Identity, Reshape)):
        producer = producer.operand.producer
    return producer is not None and isinstance(producer, SELECTIONS)
