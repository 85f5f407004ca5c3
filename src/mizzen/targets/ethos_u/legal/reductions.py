"""Rules of operators that reduce axes: MEAN, SUM, ARG_MAX."""

from __future__ import annotations

import math
from collections.abc import Callable

from mizzen.targets.ethos_u.commands import ALL, U55_U65, Arch
from mizzen.targets.ethos_u.legal.facts import OperatorFacts, TensorFacts
from mizzen.targets.ethos_u.legal.rule import (
    STOPS,
    Measure,
    Rule,
    axes_of,
    data_input,
    extents,
    input_type,
    operators,
)

MEAN_AXIS_MAXIMUM = 4096
MEAN_ELEMENTS_MAXIMUM = {"INT8": 1 << 24, "UINT8": 1 << 23, "INT16": 1 << 16}
SUM_AXIS_MAXIMUM = 1 << 16
ARG_MAX_DEPTH_MAXIMUM = 127


OnReduction = Callable[[TensorFacts, list[int]], str | None]


def _reduction(measure: OnReduction) -> Measure:
    """Make a measure of an operator's first input and the axes that it reduces."""

    def on_operator(operator: OperatorFacts, _: Arch) -> str | None:
        data = data_input(operator)
        if data is None or not data.shape or (axes := axes_of(operator, data)) is None:
            return None
        return measure(data, axes)

    return on_operator


def _mean_batch(data: TensorFacts, _: list[int]) -> str | None:
    batch = data.nhwc[0]
    return None if batch == 1 else f"a batch of {batch}, {extents(data.shape)}"


def _mean_depth(data: TensorFacts, axes: list[int]) -> str | None:
    if len(data.shape) - 1 not in axes or 1 in data.nhwc[1:]:
        return None
    return f"a mean over the depth of {extents(data.shape)}"


def _mean_axis(data: TensorFacts, axes: list[int]) -> str | None:
    longest = max((data.shape[axis] for axis in axes), default=1)
    return None if longest <= MEAN_AXIS_MAXIMUM else str(longest)


def _mean_elements(data: TensorFacts, axes: list[int]) -> str | None:
    most = MEAN_ELEMENTS_MAXIMUM.get(data.dtype)
    count = math.prod(data.shape[axis] for axis in axes)
    return None if most is None or count <= most else f"{count} of {data.dtype}"


def _mean_type(operator: OperatorFacts, _: Arch) -> str | None:
    data = data_input(operator)
    return None if data is None or data.dtype in MEAN_ELEMENTS_MAXIMUM else data.dtype


def _sum_axis(data: TensorFacts, axes: list[int]) -> str | None:
    longest = max((data.shape[axis] for axis in axes if axis < len(data.shape) - 1), default=1)
    return None if longest <= SUM_AXIS_MAXIMUM else str(longest)


def _arg_max_axis(data: TensorFacts, axes: list[int]) -> str | None:
    last = len(data.shape) - 1
    return None if axes == [last] else f"axis {axes[0] if axes else 0} of {extents(data.shape)}"


def _arg_max_depth(operator: OperatorFacts, _: Arch) -> str | None:
    data = data_input(operator)
    depth = 0 if data is None else data.nhwc[3]
    return None if depth <= ARG_MAX_DEPTH_MAXIMUM else str(depth)


def _arg_max_batch(operator: OperatorFacts, _: Arch) -> str | None:
    data = data_input(operator)
    batch = 1 if data is None else data.nhwc[0]
    return None if batch == 1 else str(batch)


_MEAN = operators("MEAN")
_ARG_MAX = operators("ARG_MAX")

REDUCTION_RULES: tuple[Rule, ...] = (
    Rule(
        "mean-type",
        _MEAN,
        ALL,
        "an input of INT8, UINT8 or INT16",
        _mean_type,
        "quantise it to one of these",
    ),
    Rule(
        "mean-batch",
        _MEAN,
        ALL,
        "a batch of 1",
        _reduction(_mean_batch),
        "RESHAPE the batch into the height",
    ),
    Rule(
        "mean-depth",
        _MEAN,
        ALL,
        "height, width or depth 1 for a mean over the depth",
        _reduction(_mean_depth),
        "RESHAPE so that height or width is 1, or use a convolution with equal weights",
    ),
    Rule(
        "mean-axis",
        _MEAN,
        ALL,
        f"at most {MEAN_AXIS_MAXIMUM} elements along an axis of the mean",
        _reduction(_mean_axis),
        "take the mean in several steps",
    ),
    Rule(
        "mean-elements",
        _MEAN,
        ALL,
        "a sum that 32 bits hold: at most 2^24 elements of INT8, 2^23 of UINT8, 2^16 of INT16",
        _reduction(_mean_elements),
        "take the mean in several steps",
    ),
    Rule(
        "sum-axis",
        operators("SUM"),
        U55_U65,
        f"at most {SUM_AXIS_MAXIMUM} elements along the axis of a sum",
        _reduction(_sum_axis),
        "sum in several steps",
        STOPS,
    ),
    Rule(
        "arg-max-axis",
        _ARG_MAX,
        U55_U65,
        "the last axis",
        _reduction(_arg_max_axis),
        "TRANSPOSE so that it is the last",
    ),
    Rule(
        "arg-max-depth",
        _ARG_MAX,
        U55_U65,
        f"at most {ARG_MAX_DEPTH_MAXIMUM} elements along its axis",
        _arg_max_depth,
        "leave it out, and find the largest on the CPU",
    ),
    Rule(
        "arg-max-batch",
        _ARG_MAX,
        U55_U65,
        "a batch of 1",
        _arg_max_batch,
        "RESHAPE the batch into the height",
        STOPS,
    ),
    Rule(
        "arg-max-type",
        _ARG_MAX,
        ALL,
        "an input of INT8 or UINT8",
        input_type("INT8", "UINT8"),
        "quantise it to INT8",
        STOPS,
    ),
)
"""Rules of reductions."""
