"""Sums and products of two tensors, or of a tensor and a constant.

Front-ends scale both operands to one unit in 32 bits by RESCALEs, add or multiply, and RESCALE
the result. A constant operand makes an affine function of it all: number * factor + offset, for
which there are cheaper forms (see `conversion`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.graph import Array, DType, Operation, Value
from mizzen.patterns import Const, Match, Pattern, Reject, Through, Var, chain, of, op
from mizzen.targets.ethos_n.operations import Addition
from mizzen.targets.ethos_n.patterns.emission import Emission
from mizzen.targets.ethos_n.patterns.findings import Findings, unfit
from mizzen.targets.ethos_n.patterns.kernels import need_no_wrapping
from mizzen.targets.ethos_n.patterns.values import (
    Rescaling,
    close,
    contents,
    info_of,
    one_rescaling_of,
    quantization_info,
)
from mizzen.targets.ethos_n.tensors import QuantizationInfo

SMALL = of(DType.INT8, DType.UINT8, DType.INT16)

X, Y = Var("x", SMALL), Var("y", SMALL)
LEFT = chain(op("RESCALE", X, result=of(DType.INT32), once=True))
RIGHT = chain(op("RESCALE", Y, result=of(DType.INT32), once=True))
SUM = op("ADD", LEFT, RIGHT, once=True)
SUM_SCALED = op("RESCALE", SUM)

C = Const("constant")
TENSOR = chain(op("RESCALE", X, result=of(DType.INT32), once=True))
CONSTANT = chain(op("RESCALE", C, result=of(DType.INT32)))
SHIFTED = op(("ADD", "SUB"), TENSOR, CONSTANT, once=True)
SHIFTED_SCALED = op("RESCALE", SHIFTED)

FACTOR = chain(op("RESCALE", C, result=of(DType.INT32)))
MULTIPLIED = chain(op("RESCALE", X, result=of(DType.INT32), once=True))
PRODUCT = op("MUL", MULTIPLIED, FACTOR, once=True)
PRODUCT_SCALED = op("RESCALE", PRODUCT)


def _two_tensors(match: Match) -> Reject | None:
    """Neither operand is a constant."""
    if match[X].constant is not None or match[Y].constant is not None:
        return Reject("neither operand may be a constant", match[SUM])
    return None


PATTERNS = {
    "qnn_add": Pattern("ethos-n.qnn_add", SUM_SCALED, (_two_tensors,)),
}


def addition(emission: Emission, match: Match) -> None:
    """Add a sum of two tensors."""
    result = match.root.result
    findings = Findings()
    findings.feature_map(match[X], match[Y], result)
    findings.settle()
    output = quantization_info(result)
    rescaling = one_rescaling_of(match.root)
    for value, steps in ((match[X], LEFT), (match[Y], RIGHT)):
        found = line_of(match, value, steps)
        wanted = found.quantization.scale / output.scale
        findings.need(
            close(found.ratio * rescaling.ratio, wanted)
            and found.zero_point == found.quantization.zero_point
            and rescaling.after == output.zero_point,
            "sum",
            f"multiplier={found.ratio * rescaling.ratio:g}, multiplier must = {wanted:g}",
            limit="the multipliers and zero points that the tensors' quantisations give",
        )
        need_no_wrapping(findings, info_of(value), output)
    findings.settle()
    first, second = emission.operand(match[X]), emission.operand(match[Y])
    emission.bind(result, emission.add(Addition(output), first, second))


@dataclass(frozen=True, slots=True)
class Line:
    """What RESCALEs in a row make of a feature map: (x - zero_point) * ratio."""

    zero_point: int
    ratio: float
    quantization: QuantizationInfo


def line_of(match: Match, value: Value, steps: Through) -> Line:
    """Read the RESCALEs between a feature map and the sum or product."""
    found = _rescalings(match, steps)
    if not found:
        raise unfit("operands", "an operand must be scaled to 32 bits before")
    return Line(found[0].before, _ratio(found), quantization_info(value))


def units_of(match: Match, steps: Through) -> tuple[Array, int, float]:
    """Return a constant operand's numbers, their zero point, and by what RESCALEs multiply them."""
    data = contents(match[C])
    found = _rescalings(match, steps)
    return data, found[0].before if found else 0, _ratio(found)


def _rescalings(match: Match, steps: Through) -> list[Rescaling]:
    """Read the RESCALEs of a chain, the first one first."""
    if steps not in match:
        return []
    operations: tuple[Operation, ...] = match[steps]
    found = [one_rescaling_of(operation) for operation in reversed(operations)]
    if any(row.after for row in found) or any(row.before for row in found[1:]):
        raise unfit("zero-point", "sums in 32 bits must have no zero point")
    return found


def _ratio(found: list[Rescaling]) -> float:
    return float(np.prod([row.ratio for row in found])) if found else 1.0
