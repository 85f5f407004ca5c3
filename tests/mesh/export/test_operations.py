"""Every operation that has a form of C gives the integers of the reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mizzen.graph import DType, Operation, ResizeMode, RoundingMode, Value
from mizzen.mesh.execution.cutting import cut
from mizzen.mesh.export import export_element
from mizzen.mesh.export.elements import RULES
from mizzen.mesh.export.pointwise import POINTWISE
from mizzen.mesh.export.tiles import PRODUCTS, operations_of
from mizzen.mesh.program import Compute, MeshProgram, RegionKind

from .building import differing_here, recorded
from .chains import Chain, Chains, program_of

I8, I16, I32, BOOL = DType.INT8, DType.INT16, DType.INT32, DType.BOOL
SHAPE = (1, 4, 5, 6)
DOUBLE = RoundingMode.DOUBLE_ROUND


def binary(kind: str) -> Chain:
    return lambda make, x: make(
        kind, make.wide(x), make.some((1, 1, 5, 6), -(1 << 25), 1 << 25, I32)
    )


def bits(kind: str, dtype: DType, most: int = 100, **attributes: bool) -> Chain:
    def chain(make: Chains, x: Value) -> Value:
        value = x if dtype is I8 else make("CAST", x, dtype=dtype)
        return make(kind, value, make.some((1, 4, 1, 6), 0, most, dtype), **attributes)

    return chain


def positive(make: Chains, x: Value) -> Value:
    return make("GREATER", make.wide(x), make.constant([[[[0]]]]))


def equal(make: Chains, x: Value) -> Value:
    wide = make("CAST", make("CLAMP", x, min_val=-3, max_val=4), dtype=I32)
    return make("EQUAL", wide, make.constant([[[[4]]]]))


def logical(kind: str) -> Chain:
    def chain(make: Chains, x: Value) -> Value:
        other = make("GREATER", make.wide(x), make.some((1, 4, 5, 6), -(1 << 25), 1 << 25, I32))
        return make("CAST", make(kind, positive(make, x), other), dtype=I8)

    return chain


def unary(kind: str) -> Chain:
    return lambda make, x: make(kind, make.wide(x))


def multiplied(dtype: DType, shift: int) -> Chain:
    def chain(make: Chains, x: Value) -> Value:
        value = {I8: lambda: x, I16: lambda: make("CAST", x, dtype=I16)}.get(
            dtype, lambda: make.wide(x)
        )()
        most = {I8: 127, I16: 32767}.get(dtype, 1 << 16)
        other = make.some((1, 1, 1, 6), -most, most, dtype)
        return make("MUL", value, other, make.constant([shift], I8))

    return chain


def table16(make: Chains, x: Value) -> Value:
    spread = make.rescaled(x, I16, 23)
    return make("TABLE", spread, make.some((513,), -(1 << 13), 1 << 13, I16))


def reduced(kind: str, axis: int) -> Chain:
    def chain(make: Chains, x: Value) -> Value:
        if kind in ("REDUCE_ALL", "REDUCE_ANY"):
            return make(kind, positive(make, x), axis=axis)
        return make.narrow(make(kind, make.wide(x), axis=axis), 50)

    return chain


def pooled(kind: str, kernel: int, stride: int, pad: tuple[int, ...]) -> Chain:
    def chain(make: Chains, x: Value) -> Value:
        sides = {"kernel": (kernel, kernel), "stride": (stride, stride), "pad": pad}
        if kind == "MAX_POOL2D":
            return make(kind, x, **sides)
        zero_points = make.constant([3], I8), make.constant([-2], I8)
        return make(kind, x, *zero_points, acc_type=I32, **sides)

    return chain


def gathered(make: Chains, x: Value) -> Value:
    rows = make("RESHAPE", x, make.constant((1, 20, 6), DType.SHAPE))
    line = make("ARGMAX", rows, axis=2)
    return make("GATHER", rows, line)


def softmax_like(make: Chains, x: Value) -> Value:
    """Two reductions behind each other, whose results every element takes."""
    wide = make.wide(x)
    rest = make("SUB", wide, make("REDUCE_MAX", wide, axis=3))
    total = make("REDUCE_SUM", make.rescaled(rest, I32, 34), axis=3)
    return make.narrow(make("SUB", rest, total), 50)


def product(make: Chains, x: Value) -> Value:
    """Of what does not lie in memory: it is kept in scratch memory."""
    left = make(
        "RESHAPE", make("CLAMP", x, min_val=-90, max_val=80), make.constant((2, 10, 6), DType.SHAPE)
    )
    right = make("TRANSPOSE", left, perms=(0, 2, 1))
    zero_points = make.constant([5], I8), make.constant([-7], I8)
    return make.narrow(make("MATMUL", left, right, *zero_points), 41)


def convolution(dtype: DType, dilation: int = 1) -> Chain:
    def chain(make: Chains, x: Value) -> Value:
        padded = make(
            "PAD", x, make.constant((0, 0, 1, 2, 0, 1, 0, 0), DType.SHAPE), make.constant([4], I8)
        )
        value = padded if dtype is I8 else make.rescaled(padded, I16, 24)
        zero_point = 9 if dtype is I8 else 0
        sums = make(
            "CONV2D",
            value,
            make.some((3, 2, 2, 6), -127, 128, I8),
            make.some((3,), -9000, 9000, I32 if dtype is I8 else DType.INT48),
            make.constant([zero_point], dtype),
            make.constant([0], I8),
            pad=(1, 0, 0, 1),
            stride=(1, 1),
            dilation=(dilation, dilation),
        )
        if dtype is I8:
            return make.rescaled(sums, I8, [38, 39, 40], -5, rounding_mode=DOUBLE, per_channel=True)
        return make.rescaled(sums, I16, [23, 24, 25], scale32=False)

    return chain


def resized(mode: ResizeMode) -> Chain:
    def chain(make: Chains, x: Value) -> Value:
        numbers = ((6, 2, 8, 4), (-1, 2), (3, 2))
        operands = (make.constant(row, DType.SHAPE) for row in numbers)
        return make("RESIZE", x, *operands, mode=mode)

    return chain


def concatenated(make: Chains, x: Value) -> Value:
    parts = (
        x,
        make("REVERSE", x, axis=2),
        make("NEGATE", x, *[make.constant([k], I8) for k in (3, -9)]),
    )
    return make("CONCAT", *parts, axis=1)


def selected(make: Chains, x: Value) -> Value:
    return make("SELECT", positive(make, x), x, make("BITWISE_NOT", x))


CHAINS: dict[str, Chain] = {
    **{f"{kind} of 32 bits": binary(kind) for kind in ("ADD", "SUB", "MAXIMUM", "MINIMUM")},
    **{kind: logical(kind) for kind in ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR")},
    **{kind: binary(kind) for kind in ("GREATER_EQUAL", "INTDIV")},
    **{
        f"{kind} of {dtype.value}": bits(kind, dtype)
        for kind in ("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR")
        for dtype in (I8, I16)
    },
    **{
        f"{kind} of {dtype.value}": bits(kind, dtype, most)
        for kind in ("LOGICAL_LEFT_SHIFT", "LOGICAL_RIGHT_SHIFT")
        for dtype, most in ((I8, 8), (I16, 16), (I32, 32))
    },
    "shift": bits("ARITHMETIC_RIGHT_SHIFT", I32, 32, round=False),
    "rounded shift": bits("ARITHMETIC_RIGHT_SHIFT", I8, 8, round=True),
    "EQUAL": equal,
    "ABS": unary("ABS"),
    "CLZ": unary("CLZ"),
    "LOGICAL_NOT": lambda make, x: make("LOGICAL_NOT", positive(make, x)),
    "MUL of i8": multiplied(I8, 0),
    "MUL of i16": multiplied(I16, 0),
    "MUL that wraps": multiplied(I32, 0),
    "MUL with a shift": multiplied(I32, 13),
    "TABLE of i8": lambda make, x: make("TABLE", x, make.some((256,), -128, 128, I8)),
    "TABLE of i16": table16,
    "unsigned input": lambda make, x: make.rescaled(
        x, I8, 31, -128, input_unsigned=True, input_zp=-100
    ),
    "unsigned output": lambda make, x: make.rescaled(x, I8, 31, -128, output_unsigned=True),
    "RESCALE twice": lambda make, x: make.narrow(
        make.rescaled(x, I32, 33, rounding_mode=DOUBLE), 30
    ),
    "RESCALE by 16 bits": lambda make, x: make.rescaled(x, I8, 15, 3, scale32=False),
    "to truth and back": lambda make, x: make("CAST", make("CAST", x, dtype=BOOL), dtype=I16),
    **{
        f"{kind} along {axis}": reduced(kind, axis)
        for kind in ("REDUCE_SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL", "REDUCE_ANY")
        for axis in (1, 3)
    },
    "padded average": pooled("AVG_POOL2D", 3, 2, (1, 0, 1, 1)),
    "greatest of windows": pooled("MAX_POOL2D", 2, 1, (1, 0, 0, 1)),
    "TILE": lambda make, x: make("TILE", x, make.constant((1, 2, 1, 2), DType.SHAPE)),
    "SLICE": lambda make, x: make(
        "SLICE", x, *[make.constant(row, DType.SHAPE) for row in ((0, 1, 2, 0), (1, 2, 3, 5))]
    ),
    "IDENTITY": lambda make, x: make("IDENTITY", x),
    "gathered": gathered,
    **{f"RESIZE {mode.value}": resized(mode) for mode in ResizeMode},
    "softmax-like": softmax_like,
    "product": product,
    "convolution": convolution(I8),
    "dilated convolution": convolution(I8, 2),
    "wide convolution": convolution(I16),
    "concatenated": concatenated,
    "selected": selected,
}


def operations(program: MeshProgram) -> Iterator[Operation]:
    for instruction in program.elements[0].instructions:
        if isinstance(instruction, Compute):
            yield from operations_of(cut(program.network, instruction.kernel))


@pytest.fixture(scope="module")
def program() -> MeshProgram:
    return program_of(CHAINS, SHAPE)


def test_the_integers_of_the_reference(program: MeshProgram, tmp_path: Path) -> None:
    assert differing_here(program, tmp_path) == []


def test_no_result_is_the_same_everywhere(program: MeshProgram) -> None:
    given = recorded(program).given
    assert len(given) == len(CHAINS)
    dull = [key for key, values in given.items() if len(np.unique(values)) < 2]
    assert dull == []


def test_every_operation_with_a_form_is_here(program: MeshProgram) -> None:
    there = {row.kind for row in operations(program)}
    forms = {*POINTWISE} | {
        kind for kind, made in Operation.of_kind.items() if made in RULES or made in PRODUCTS
    }
    assert forms - there == {"DEPTHWISE_CONV2D"}, "which the networks by hand have"


def test_what_c_keeps_lies_behind_regions_without_scratch_memory(tmp_path: Path) -> None:
    program = program_of({"product": product, "softmax-like": softmax_like}, SHAPE)
    (row,) = program.elements
    scratch = [region.kind is RegionKind.SCRATCH for region in row.regions]
    assert scratch[-1]
    assert sum(scratch) == 2
    used = [
        replace(region, slot_bytes=1) if is_scratch else region
        for region, is_scratch in zip(row.regions, scratch, strict=True)
    ]
    small = replace(program, elements=(replace(row, regions=tuple(used)),))
    assert differing_here(small, tmp_path) == []
    header = export_element(small, 0)["element.h"].decode()
    found = re.search(r"#define ELEMENT_DATA_BYTES (\d+)u", header)
    assert found
    kept = 2 * (4 * 5) * 4
    assert int(found[1]) == -(-small.elements[0].data_bytes // 16) * 16 + kept
    assert f"behind them, {kept} bytes" in header
