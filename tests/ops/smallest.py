"""For every operation, a small one; for every row of its types, a graph of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import DEFINITIONS, Builder, Definition, Row
from mizzen.ops.definition import element_type

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """Shapes of the operands that are tensors, values of those that are shapes, attributes."""

    shapes: tuple[Shape, ...]
    values: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])


WINDOW = {"pad": (0, 1, 1, 0), "stride": (1, 2)}
IMAGE = {"kernel": (2, 2), **WINDOW}
UNARY = Case(((2, 3),))
BINARY = Case(((2, 1), (1, 3)))
REDUCTION = Case(((2, 3),), attributes={"axis": 1})
RESIZE = {"scale": (2, 1, 4, 2), "offset": (0, -1), "border": (0, 1)}

CASES: dict[str, Case] = {
    "ARGMAX": REDUCTION,
    "AVG_POOL2D": Case(((1, 3, 3, 2),), attributes=IMAGE),
    "CONV2D": Case(((1, 3, 4, 2), (3, 2, 3, 2), (3,)), attributes=WINDOW),
    "CONV3D": Case(
        ((1, 2, 3, 4, 2), (3, 1, 2, 3, 2), (3,)),
        attributes={"pad": (0, 0, 0, 1, 1, 0), "stride": (1, 1, 2)},
    ),
    "DEPTHWISE_CONV2D": Case(((1, 3, 4, 2), (2, 3, 2, 2), (4,)), attributes=WINDOW),
    "FFT2D": Case(((1, 2, 4), (1, 2, 4)), attributes={"inverse": False}),
    "MATMUL": Case(((2, 2, 3), (2, 3, 4))),
    "MAX_POOL2D": Case(((1, 3, 3, 2),), attributes=IMAGE),
    "RFFT2D": Case(((1, 2, 4),)),
    "TRANSPOSE_CONV2D": Case(
        ((1, 3, 4, 2), (3, 2, 3, 2), (1,)), attributes={"out_pad": (0, 1, -1, 0), "stride": (1, 2)}
    ),
    "CLAMP": Case(((2, 3),), attributes={"min_val": -2, "max_val": 2}),
    "ARITHMETIC_RIGHT_SHIFT": Case(((2, 1), (1, 3)), attributes={"round": True}),
    "SELECT": Case(((2, 1), (1, 3), (1, 1))),
    "REVERSE": REDUCTION,
    "CONCAT": REDUCTION,
    "PAD": Case(((2, 3),), {"padding": (0, 1, 2, 0)}),
    "RESHAPE": Case(((2, 3),), {"shape": (6, 1)}),
    "SLICE": Case(((2, 3),), {"start": (1, 0), "size": (1, 2)}),
    "TILE": Case(((2, 3),), {"multiples": (1, 2)}),
    "TRANSPOSE": Case(((2, 3),), attributes={"perms": (1, 0)}),
    "GATHER": Case(((2, 3, 2), (2, 5))),
    "SCATTER": Case(((2, 3, 2), (2, 2), (2, 2, 2))),
    "RESIZE": Case(((1, 2, 3, 2),), RESIZE),
    "RESCALE": Case(
        ((2, 3),), attributes={"per_channel": False, "rounding_mode": RoundingMode.SINGLE_ROUND}
    ),
} | {
    definition.kind: REDUCTION
    for definition in DEFINITIONS.values()
    if definition.kind.startswith("REDUCE_")
}
"""Operations that are not here take one or two tensors of any shape."""

ROWS = [
    (definition, row)
    for definition in DEFINITIONS.values()
    for row in definition.rows
    if definition.kind not in ("CONST", "CONST_SHAPE")
]


def case_of(definition: Definition) -> Case:
    """Return the case of an operation."""
    tensors = [operand for operand in definition.operands if not operand.constant]
    return CASES.get(definition.kind, BINARY if len(tensors) == 2 else UNARY)


def graph_of(definition: Definition, row: Row) -> Graph:
    """Return a graph of one operation that has the types of a row; its tensors are inputs."""
    graph, case = Graph(), case_of(definition)
    builder = Builder(graph)
    operands = list(_operands(builder, definition, row, case))
    if definition.variadic:
        operands *= 2
    attributes = {**case.attributes, **row.attributes}
    if definition.kind == "RESCALE":
        attributes["scale32"] = row.types["mul_t"] is DType.INT32
    dtype = row.types[definition.results[0][1]]
    graph.set_outputs(builder.many(definition.kind, *operands, dtype=dtype, **attributes))
    return graph


def _operands(builder: Builder, definition: Definition, row: Row, case: Case) -> Iterator[Value]:
    shapes = iter(case.shapes)
    for operand in definition.operands:
        dtype = element_type(operand, row)
        if operand.name in case.values:
            yield builder.shape(case.values[operand.name])
        elif operand.name == "table":
            size = 256 if dtype is DType.INT8 else 513
            yield builder.constant(np.arange(size) % 100, dtype)
        elif operand.constant:
            shift = operand.name == "shift" and definition.kind == "RESCALE"
            yield builder.constant([2 if shift else 0], dtype)
        else:
            yield builder.graph.add_input(TensorType(next(shapes), dtype))
