"""Operators that Vela puts on the NPU and computes wrongly there.

The rows are of its code. Mizzen's own rules, for U55 and U65, make other code of the same network
where they take all of it (`compiler.ethos_u.tflite`): an operator that meets a row is on the NPU
then if a proof holds.

Ref: Vela 5.2.0, found by running what it compiled; each is in the documentation's exceptions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import inf

import numpy as np

from mizzen.diagnostics import Reason
from mizzen.targets.ethos_u.legal.tflite_operators import same_quantization
from mizzen.targets.ethos_u.legal.tflite_tensors import (
    WEIGHTED,
    Measure,
    OperatorFacts,
    Rule,
    TensorFacts,
    axes_of,
    bias,
    data_input,
    integers,
    largest_sum,
    named,
    rule,
)
from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85
from mizzen.targets.rules import Table

SOURCE = "Vela 5.2.0 compiles it wrongly, found by running the result"

SYMMETRIC = "TensorFlow Lite 8-bit quantization specification"
"""Weights are symmetric, and kernels do not read their zero points; the NPU does."""

SUMMED_EXPONENTIALS_MAXIMUM = (1 << 12) - 1
"""Each is up to 2^19 (12 integer bits), and an accumulator has 31 bits and a sign."""


@rule("sum-of-several-axes", "SUM", ALL, SOURCE).must_have(
    "one axis", "sum one axis after the other, or keep it on the CPU with `--ignore-ops SUM`"
)
def _several_axes(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    axes = None if data is None else axes_of(operator, data)
    if data is None or axes is None:
        return None
    longer = [axis for axis in axes if data.shape[axis] > 1]
    return None if len(longer) < 2 else f"axes {', '.join(map(str, longer))}"


@rule("dropped-axis", "REDUCE_MAX REDUCE_MIN", ALL, SOURCE).must_have(
    "keep_dims, or no kept axis in front of a reduced one",
    "set keep_dims, and RESHAPE behind it",
)
def _dropped_axis(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    axes = None if data is None else axes_of(operator, data)
    if data is None or axes is None or operator.option("keep_dims"):
        return None
    longer = [axis for axis, extent in enumerate(data.shape) if extent > 1]
    kept = [axis for axis in longer if axis not in axes]
    reduced = [axis for axis in longer if axis in axes]
    if not kept or not reduced or kept[0] > reduced[-1]:
        return None
    return f"axis {kept[0]} in front of axis {reduced[-1]}, which it drops"


@rule("softmax-sum", "SOFTMAX", ALL, SOURCE).must_have(
    f"at most {SUMMED_EXPONENTIALS_MAXIMUM} elements of 8 bits in a row, whose exponentials 32 "
    "bits can sum",
    "leave it out, and find the largest on the CPU",
)
def _long_rows(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    if data is None or data.dtype not in ("INT8", "UINT8"):
        return None
    return None if data.nhwc[3] <= SUMMED_EXPONENTIALS_MAXIMUM else str(data.nhwc[3])


@rule("short-bias", WEIGHTED, U85, SOURCE).must_have(
    "an INT64 bias with an INT16 input", "quantise the bias to INT64"
)
def _short_bias(operator: OperatorFacts) -> str | None:
    data, tensor = data_input(operator), bias(operator)
    if data is None or tensor is None or (data.dtype, tensor.dtype) != ("INT16", "INT32"):
        return None
    return "an INT32 bias with an INT16 input"


@rule("weights-zero", WEIGHTED, ALL, SYMMETRIC).must_have(
    "weights with zero points of 0",
    "quantise the weights symmetrically: TensorFlow Lite's kernels take their zero points for 0",
)
def _weights_zero(operator: OperatorFacts) -> str | None:
    """Kernels of unsigned bytes take what there is, FULLY_CONNECTED's that of a whole matrix."""
    weight = operator.input(1)
    if weight is None or weight.dtype != "INT8":
        return None
    if operator.kind == "FULLY_CONNECTED" and len(weight.scales) == 1:
        return None
    first = next((row for row in weight.zero_points if row), 0)
    return f"{first} of {named(weight)}" if first else None


@rule("nearest-ratio", "RESIZE_NEAREST_NEIGHBOR", U85, SOURCE).must_have(
    "a whole factor, or half_pixel_centers",
    "resize by a whole factor, or keep it on the CPU with `--ignore-ops`",
)
def _broken_ratio(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    options = ("half_pixel_centers", "align_corners")
    if data is None or any(operator.option(name) for name in options):
        return None
    output = operator.outputs[0]
    for before, after in zip(data.nhwc[1:3], output.nhwc[1:3], strict=True):
        factor = Fraction(after, max(1, before))
        if factor.denominator > 1:
            return f"a factor of {float(factor):g} without half_pixel_centers"
    return None


@rule("rescaling-clamp", "RELU6", ALL, SOURCE).must_have(
    "one scale and zero point for input and output where they are INT8 or INT16",
    "quantise its output like its input, or QUANTIZE behind it",
)
def _rescaling_clamp(operator: OperatorFacts) -> str | None:
    """The kernel clamps the integers as they are; the compiler rescales them."""
    data = data_input(operator)
    if data is None or data.dtype not in ("INT8", "INT16"):
        return None
    output = operator.outputs[0]
    same = (data.scales, data.zero_points) == (output.scales, output.zero_points)
    return None if same else "two"


@rule("mirrored-channels", "MIRROR_PAD", ALL, SOURCE).must_have(
    "padding of height and width only", "TRANSPOSE before and behind it"
)
def _mirrored_channels(operator: OperatorFacts) -> str | None:
    data, padding = data_input(operator), operator.input(1)
    if data is None or padding is None or padding.values is None:
        return None
    rows = [[0, 0]] * (4 - len(data.shape)) + padding.values.tolist()
    if len(rows) != 4 or not any((*rows[0], *rows[3])):
        return None
    return "padded channels" if any(rows[3]) else "a padded batch"


RESULT_MAXIMUM = (1 << 31) - 1
"""The kernels scale sums within 32 bits, and wrap around beyond them, where the NPU saturates."""


@rule("scaled-sum", WEIGHTED, ALL, SOURCE).must_have(
    "scales with which no sum leaves 32 bits when it is scaled",
    "choose a larger scale for the output",
)
def _scaled_sum(operator: OperatorFacts) -> str | None:
    data, weight = data_input(operator), operator.input(1)
    weights = integers(weight)
    if data is None or weight is None or weights is None:
        return None
    scale = max(_scales(operator), default=0.0)
    wide = data.dtype == "INT16"
    if scale < 1 and not wide:
        return None
    axis = weights.ndim - 1 if operator.kind == "DEPTHWISE_CONV_2D" else 0
    largest = largest_sum(weights, weight.zero_points, axis) * _magnitude(data)
    biases = integers(bias(operator))
    if biases is not None:
        largest += int(np.abs(biases.astype(np.float64)).max())
    return _beyond(largest, scale if wide else _shifted(scale))


@rule("scaled-product", "MUL", ALL, SOURCE).must_have(
    "scales with which no product leaves 32 bits when it is scaled",
    "choose a larger scale for the output",
)
def _scaled_product(operator: OperatorFacts) -> str | None:
    inputs, result = [row for row in operator.inputs if row is not None], operator.outputs[0]
    if any(len(row.scales) != 1 or row.dtype not in LIMITS for row in (*inputs, result)):
        return None
    scale = math.prod(row.scales[0] for row in inputs) / result.scales[0]
    return _beyond(math.prod(map(_magnitude, inputs)), _shifted(scale)) if scale >= 1 else None


LIMITS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}


def _magnitude(tensor: TensorFacts) -> int:
    """Return how far a value is from zero at most."""
    low, high = LIMITS.get(tensor.dtype, (0, 0))
    zero = tensor.zero_points[0] if tensor.zero_points else 0
    return max(high - zero, zero - low)


def _shifted(scale: float) -> float:
    """Return the power of two by which a kernel shifts before it multiplies."""
    return 2.0 ** max(0, math.frexp(scale)[1])


def _beyond(largest: int, factor: float) -> str | None:
    found = largest * factor
    return None if found <= RESULT_MAXIMUM else f"results up to 2^{math.log2(found):.0f}"


KERNELS = "TensorFlow Lite, what kernels/activations.cc and reduce.cc prepare"

FIXED_SCALES: dict[tuple[str, str], tuple[float, float]] = {
    ("LOGISTIC", "INT16"): (1 / 32768, 6.9e-4),
    ("SOFTMAX", "INT16"): (1 / 32768, 1e-3),
    ("SOFTMAX", "INT8"): (1 / 256, 1e-3),
    ("SOFTMAX", "UINT8"): (1 / 256, 1e-3),
    ("TANH", "INT16"): (1 / 32768, 6.9e-4),
}
"""Scales of outputs that the kernels ask for and the NPU takes for given, whatever the file says;
and by what part of it one may be off before they say so.

Those of LOGISTIC and TANH of INT8 are fixed as well, but there the kernels do not look at the
file's, and so compute what the NPU does; of UINT8 everything reads the file's.
"""


@rule("fixed-scale", "LOGISTIC SOFTMAX TANH", ALL, KERNELS).must_have(
    "an output of scale 1/256, where it has 8 bits, or 1/32768 and zero point 0",
    "quantise its output so, as TensorFlow Lite's kernels ask for, and QUANTIZE behind it",
)
def _fixed_scale(operator: OperatorFacts) -> str | None:
    output = operator.outputs[0]
    fixed = FIXED_SCALES.get((operator.kind, output.dtype))
    if fixed is None or not output.scales:
        return None
    scale, error = fixed
    near = abs(output.scales[0] - scale) <= error * scale
    if near and (output.dtype != "INT16" or not output.zero_points[0]):
        return None
    return f"{output.scales[0]:.6g} and {output.zero_points[0]} for {output.dtype}"


def _of_type(wrong: str) -> Measure:
    def measure(operator: OperatorFacts) -> str | None:
        data = data_input(operator)
        return f"{wrong} inputs" if data is not None and data.dtype == wrong else None

    return measure


DEFECTS: tuple[Rule, ...] = (
    _several_axes,
    _dropped_axis,
    _long_rows,
    rule("int32-product", "MUL", ALL, SOURCE).must_have(
        "inputs of at most 16 bits", "keep it on the CPU with `--ignore-ops MUL`"
    )(_of_type("INT32")),
    rule("unsigned-transpose", "TRANSPOSE", U55_U65, SOURCE).must_have(
        "signed inputs",
        "quantise the network to INT8, or keep it on the CPU with `--ignore-ops TRANSPOSE`",
    )(_of_type("UINT8")),
    rule("quantised-quotient", "DIV", U85, SOURCE).must_have(
        "INT32 inputs", "keep it on the CPU with `--ignore-ops DIV`"
    )(_of_type("INT8")),
    _short_bias,
    _weights_zero,
    _broken_ratio,
    _rescaling_clamp,
    _mirrored_channels,
    _scaled_sum,
    _scaled_product,
    _fixed_scale,
    rule("reduced-quantisation", "REDUCE_MAX REDUCE_MIN", ALL, KERNELS).must_have(
        "one scale and zero point for input and output",
        "quantise its output like its input, as TensorFlow Lite's kernels ask for, and QUANTIZE it",
    )(same_quantization),
)
"""Known defects, as rules that a network must follow for its result to be right."""


TABLE = Table(
    DEFECTS,
    "the result will be wrong: {kind} must have {limit} for this compiler, and has {actual}",
)


def defects(operator: OperatorFacts) -> Iterator[Reason]:
    """Return the known defects that an operator on the NPU meets."""
    return TABLE.reasons(operator, operator.kind, operator.arch)


def confused_biases(operators: Sequence[OperatorFacts]) -> Iterator[tuple[int, Reason]]:
    """Return the operators of one network whose biases the compiler confuses, by their index.

    It finds what it has encoded by weights and scales, and takes no notice of biases.
    """
    alike: dict[object, list[int]] = defaultdict(list)
    for index, operator in enumerate(operators):
        if operator.kind in WEIGHTED and (scales := _scales(operator)):
            alike[operator.kind, operator.inputs[1].shape, scales].append(index)  # pyright: ignore[reportOptionalMemberAccess] _scales has seen it
    for indices in alike.values():
        for index in indices:
            others = [other for other in indices if other != index]
            if any(_confused(operators[index], operators[other]) for other in others):
                yield index, _confusion(operators[index])


def _scales(operator: OperatorFacts) -> tuple[float, ...]:
    """Return the factor from sum to result of each channel; nothing where that is not known."""
    data, weights = data_input(operator), operator.input(1)
    if data is None or weights is None or weights.values is None:
        return ()
    result = operator.outputs[0]
    if len(data.scales) != 1 or len(result.scales) != 1 or not 0 < result.scales[0] < inf:
        return ()
    return tuple(data.scales[0] * scale / result.scales[0] for scale in weights.scales)


def _confused(one: OperatorFacts, other: OperatorFacts) -> bool:
    """Whether two operators with the same scales have the same weights, and not the same bias."""
    return _same(one.input(1), other.input(1)) and not _same(bias(one), bias(other))


def _same(one: TensorFacts | None, other: TensorFacts | None) -> bool:
    if one is None or other is None or one.values is None or other.values is None:
        return one is other
    return one.zero_points == other.zero_points and np.array_equal(one.values, other.values)


def _confusion(operator: OperatorFacts) -> Reason:
    limit = "another scale or other weights than each operator with another bias"
    actual = "those of one"
    return Reason(
        "confused-biases",
        f"the result may be wrong: {operator.kind} must have {limit} for this compiler, "
        f"and has {actual}",
        limit,
        actual,
        "change one weight of one of them by a step, or give one of the results another scale",
        SOURCE,
    )
