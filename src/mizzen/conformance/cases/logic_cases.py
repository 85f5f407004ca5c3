"""Comparisons, logic, selection, indexing and conversions: what Ethos-U85 adds to U55 and U65."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mizzen.conformance.networks import Case, Q, Shape, i32, one
from mizzen.package.tflite.builder import NetworkBuilder

FULL, ROW, CHANNEL = (1, 5, 6, 7), (1, 1, 6, 7), (1, 1, 1, 7)
COMPARISONS = {
    "EQUAL": "EqualOptions",
    "NOT_EQUAL": "NotEqualOptions",
    "GREATER": "GreaterOptions",
    "GREATER_EQUAL": "GreaterEqualOptions",
    "LESS": "LessOptions",
    "LESS_EQUAL": "LessEqualOptions",
}
BOOLEAN = Q(1.0)


def rows() -> Iterator[Case]:
    """Return the networks."""
    for kind in COMPARISONS:
        for dtype in ("int8", "int16", "uint8", "int32"):
            # LiteRT's kernel scales int16 down before it compares: unequal values become equal.
            if (kind, dtype) not in (("EQUAL", "int16"), ("NOT_EQUAL", "int16")):
                yield _comparison(kind, FULL, FULL, dtype)
        yield _comparison(kind, FULL, CHANNEL, "int8")
        yield _comparison(kind, ROW, FULL, "int8")
    yield from _logic()
    yield from _selections()
    yield from _indexing()
    yield from _conversions()
    yield _variable("READ_VARIABLE")
    yield _variable("ASSIGN_VARIABLE")


def _label(*shapes: Shape) -> str:
    return "_".join("x".join(map(str, shape)) for shape in shapes)


def _comparison(kind: str, a: Shape, b: Shape, dtype: str) -> Case:
    """Describe a comparison whose inputs have the same quantisation, as converters make it."""
    out = tuple(np.broadcast_shapes(a, b))
    options: tuple[str, dict[str, Any]] = (COMPARISONS[kind], {})
    limit = 3 if "EQUAL" in kind and dtype == "int32" else None  # so that some are
    name = f"{kind.lower()}_{_label(a, b)}_{dtype}"
    return one(
        name, kind, [a, b], [out], dtype, options, out_dtype="bool", out_q=BOOLEAN, limit=limit
    )


def _logic() -> Iterator[Case]:
    for kind, table in (("LOGICAL_AND", "LogicalAndOptions"), ("LOGICAL_OR", "LogicalOrOptions")):
        for a, b in ((FULL, FULL), (FULL, CHANNEL), (ROW, FULL)):
            name = f"{kind.lower()}_{_label(a, b)}"
            yield one(name, kind, [a, b], [FULL], "bool", (table, {}))
    yield one("logical_not", "LOGICAL_NOT", [FULL], [FULL], "bool", ("LogicalNotOptions", {}))
    for kind in ("REDUCE_ANY", "REDUCE_ALL"):
        for axis in (1, 2, 3):
            shape = tuple(3 if i == axis else size for i, size in enumerate(FULL))
            out = tuple(1 if i == axis else size for i, size in enumerate(FULL))
            yield one(f"{kind.lower()}_axis{axis}", kind, [shape], [out], "bool",
                      ("ReducerOptions", {"keep_dims": True}), constants=[i32(axis)])  # fmt: skip


def _selections() -> Iterator[Case]:
    for kind, table in (("SELECT", "SelectOptions"), ("SELECT_V2", "SelectV2Options")):
        for dtype in ("int8", "int16", "int32"):
            yield one(f"{kind.lower()}_{dtype}", kind, [FULL] * 3, [FULL], dtype, (table, {}),
                      in_dtypes=("bool", dtype, dtype), out_q=Q(0.05, 7) if dtype == "int8"
                      else Q(0.0004) if dtype == "int16" else Q(0.0001))  # fmt: skip
    yield one("select_v2_broadcast", "SELECT_V2", [ROW, FULL, CHANNEL], [FULL], "int8",
              ("SelectV2Options", {}), in_dtypes=("bool", "int8", "int8"),
              out_q=Q(0.05, 7))  # fmt: skip


def _indexing() -> Iterator[Case]:
    for dtype in ("int8", "int16", "int32"):
        yield one(f"gather_{dtype}", "GATHER", [(9, 7)], [(5, 7)], dtype,
                  ("GatherOptions", {"axis": 0, "batch_dims": 0}),
                  constants=[i32(8, 0, 3, 3, 5)])  # fmt: skip
        yield one(f"scatter_nd_{dtype}", "SCATTER_ND", [(4, 7)], [(9, 7)], dtype,
                  ("ScatterNdOptions", {}), constants=[i32([8], [0], [3], [5]), i32(9, 7)],
                  constants_first=1)  # fmt: skip
        for axis in (1, 2, 3):
            yield one(f"reverse_v2_axis{axis}_{dtype}", "REVERSE_V2", [FULL], [FULL], dtype,
                      ("ReverseV2Options", {}), constants=[i32(axis)])  # fmt: skip
    yield one("gather_batches", "GATHER", [(2, 9, 7)], [(2, 4, 7)], "int8",
              ("GatherOptions", {"axis": 1, "batch_dims": 1}),
              constants=[i32([8, 0, 3, 3], [1, 1, 7, 2])])  # fmt: skip
    yield one("gather_axis1", "GATHER", [(2, 9, 7)], [(2, 4, 7)], "int8",
              ("GatherOptions", {"axis": 1, "batch_dims": 0}),
              constants=[i32(8, 0, 3, 3)])  # fmt: skip


def _conversions() -> Iterator[Case]:
    for source, target in (("int8", "int16"), ("int8", "int32"), ("int16", "int8"),
                           ("int16", "int32"), ("uint8", "int8"), ("int32", "int8"),
                           ("bool", "int8"), ("int8", "bool")):  # fmt: skip
        yield one(f"cast_{source}_{target}", "CAST", [FULL], [FULL], source, ("CastOptions", {}),
                  out_dtype=target, out_q=Q(1.0))  # fmt: skip


def _variable(kind: str) -> Case:
    """Describe a network whose input goes through a resource variable, or through two."""
    name = kind.lower()
    variables = 1 if kind == "READ_VARIABLE" else 2

    def build() -> bytes:
        net = NetworkBuilder(name)
        passed = [net.tensor(f"x{i}", FULL, "int8", 0.05) for i in range(variables + 1)]
        handles = [net.resource(f"handle{i}") for i in range(variables)]
        for i, handle in enumerate(handles):
            net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": f"v{i}"}))
        for before, handle, after in zip(passed, handles, passed[1:], strict=False):
            net.operator("ASSIGN_VARIABLE", [handle, before], [], ("AssignVariableOptions", {}))
            net.operator("READ_VARIABLE", [handle], [after], ("ReadVariableOptions", {}))
        return net.finish(passed[:1], passed[-1:])

    return Case(name, kind, "int8", build)
