"""Functions of single numbers: sigmoid, tanh, leaky ReLU as TABLEs, bounds, requantisation.

A TABLE is known by its entries: whatever made it, it is a function if every entry is within one of
the number that the function's value rounds to.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.graph import Array, DType, Value
from mizzen.patterns import Const, Match, Pattern, Reject, Var, of, op
from mizzen.targets.ethos_n.operations import (
    LeakyRelu,
    Operation,
    Relu,
    Sigmoid,
    Tanh,
)
from mizzen.targets.ethos_n.patterns.emission import Emission
from mizzen.targets.ethos_n.patterns.findings import Findings, UnfitError
from mizzen.targets.ethos_n.patterns.kernels import need_exponents, need_no_wrapping
from mizzen.targets.ethos_n.patterns.values import (
    close,
    contents,
    info_of,
    quantization_info,
    rescaling_of,
)
from mizzen.targets.ethos_n.patterns.weighted import requantized
from mizzen.targets.ethos_n.tensors import QuantizationInfo

X = Var("x")
ENTRIES = Const("entries")
TABLE = op("TABLE", X, ENTRIES, result=of(DType.INT8))
CLAMP = op("CLAMP", X)
NARROW = Var("x", of(DType.INT8, DType.UINT8))
REQUANTIZED = op("RESCALE", NARROW, result=of(DType.INT8, DType.UINT8))

EVERY = np.arange(-128, 128)
"""The numbers that a table has entries for, in its order."""

ANY_SLOPE = 0.01
"""The library's own default."""

Function = Callable[[Array], Array]


def sigmoid(reals: Array) -> Array:
    """1 / (1 + exp(-x)); beyond +-700, where float64 ends, nothing changes."""
    return 1.0 / (1.0 + np.exp(-np.clip(reals, -700.0, 700.0)))


def _is_table_of(function: Function, name: str) -> Callable[[Match], Reject | None]:
    def guard(match: Match) -> Reject | None:
        try:
            reals, output = _tabulated(match)
        except UnfitError as error:
            return Reject(str(error))
        if not _agrees(match, function(reals), output):
            return Reject(f"the table must be of {name}")
        return None

    guard.__doc__ = f"The table is of {name}."
    return guard


def _is_leaky(match: Match) -> Reject | None:
    """The table is of x, or alpha * x where x < 0."""
    try:
        reals, output = _tabulated(match)
        slope = _slope(match, reals, output)
    except UnfitError as error:
        return Reject(str(error))
    if not _agrees(match, np.where(reals < 0, slope * reals, reals), output):
        return Reject("the table must be of a leaky ReLU")
    return None


PATTERNS = {
    "qnn_sigmoid": Pattern("ethos-n.qnn_sigmoid", TABLE, (_is_table_of(sigmoid, "sigmoid"),)),
    "qnn_tanh": Pattern("ethos-n.qnn_tanh", TABLE, (_is_table_of(np.tanh, "tanh"),)),
    "qnn_leaky_relu": Pattern("ethos-n.qnn_leaky_relu", TABLE, (_is_leaky,)),
    "clip": Pattern("ethos-n.clip", CLAMP),
    "qnn_requantize": Pattern("ethos-n.qnn_requantize", REQUANTIZED),
}


def _tabulated(match: Match) -> tuple[Array, QuantizationInfo]:
    """Return the reals that a table's entries are for, and how they are quantised."""
    source = quantization_info(match[X])
    reals = (EVERY - source.zero_point) * np.float64(source.scale)
    return reals, quantization_info(match.root.result)


def _agrees(match: Match, reals: Array, output: QuantizationInfo) -> bool:
    """Whether a table's entries are within one of what reals round to."""
    wanted = np.clip(np.rint(reals / output.scale) + output.zero_point, -128, 127)
    found = contents(match[ENTRIES]).reshape(-1).astype(np.float64)
    return bool(np.abs(found - wanted).max() <= 1)


def _slope(match: Match, reals: Array, output: QuantizationInfo) -> float:
    """Return the slope of a table's entries for negative reals, where they are not at a bound.

    Where there are none, any slope is right, so that bounds alone, ReLU, are a leaky ReLU too.
    """
    entries = contents(match[ENTRIES]).reshape(-1).astype(np.float64)
    used = (reals < 0) & (entries > -128) & (entries < 127)
    if not used.any():
        return ANY_SLOPE
    given = (entries[used] - output.zero_point) * output.scale
    return float((given * reals[used]).sum() / (reals[used] ** 2).sum())


def logistic(emission: Emission, match: Match) -> None:
    """Add a sigmoid; it gives 1/256 steps from the lowest number, which are requantised if need
    be."""
    _function(emission, match, Sigmoid())


def hyperbolic_tangent(emission: Emission, match: Match) -> None:
    """Add a hyperbolic tangent; it gives 1/128 steps, which are requantised if need be."""
    _function(emission, match, Tanh())


def _function(emission: Emission, match: Match, operation: Operation) -> None:
    result = match.root.result
    _checked(match[X], result)
    findings = Findings()
    need_exponents(findings, info_of(match[X]))
    findings.settle()
    operand = emission.add(operation, emission.as_it_is(match[X]))
    wanted = quantization_info(result)
    if operand.info.quantization != wanted:
        operand = requantized(emission, operand, wanted)
    emission.bind(result, operand)


def leaky(emission: Emission, match: Match) -> None:
    """Add a leaky ReLU; its slope is that of the table's entries."""
    reals, output = _tabulated(match)
    slope = float(np.float32(_slope(match, reals, output)))
    findings = Findings()
    findings.feature_map(match[X], match.root.result)
    findings.need(
        0.0 < slope < 1.0,
        "alpha",
        f"leaky relu alpha must be less than 1 and greater than 0, but was {slope:g}",
        limit="a slope between 0 and 1",
        actual=f"{slope:g}",
        help="a slope of 0 is ReLU",
    )
    findings.settle()
    need_no_wrapping(findings, info_of(match[X]), output)
    findings.settle()
    operand = emission.add(LeakyRelu(slope, output), emission.as_it_is(match[X]))
    emission.bind(match.root.result, operand)


def clip(emission: Emission, match: Match) -> None:
    """Add bounds, in quantised numbers."""
    result = match.root.result
    _checked(match[X], result)
    low, high = int(match.root["min_val"]), int(match.root["max_val"])
    emission.bind(result, emission.add(Relu(low, high), emission.as_it_is(match[X])))


def requantize(emission: Emission, match: Match) -> None:
    """Add the same reals in another quantisation."""
    result = match.root.result
    _checked(match[NARROW], result)
    before, after = quantization_info(match[NARROW]), quantization_info(result)
    rescaling = rescaling_of(match.root)
    findings = Findings()
    findings.need(
        close(rescaling.ratios, before.scale / after.scale)
        and (rescaling.before, rescaling.after) == (before.zero_point, after.zero_point),
        "requantization",
        f"multiplier={rescaling.ratio:g}, multiplier must = {before.scale / after.scale:g}",
        limit="the multiplier and zero points that the tensors' quantisations give",
        actual=f"{rescaling.ratio:g}",
        help="RESCALE for what is no requantisation stays on the CPU",
    )
    findings.settle()
    source = emission.as_it_is(match[NARROW])
    emission.bind(result, requantized(emission, source, after))


def _checked(*values: Value) -> None:
    findings = Findings()
    findings.feature_map(*values)
    findings.settle()
