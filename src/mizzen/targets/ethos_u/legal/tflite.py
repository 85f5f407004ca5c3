"""What of TFLite runs on the NPU: the operators there are, and rules with what to change.

Our own code decides. A rule is here where its words help more than those of the code, which knows
the graph and not the user's operators; who breaks one is refused by the code too, which tests
repeat on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.diagnostics import Reason
from mizzen.targets import rules
from mizzen.targets.ethos_u.legal.tflite_facts import (
    WEIGHTED,
    OperatorFacts,
    TensorFacts,
    bias,
    data_input,
    feature_maps,
    named,
    weights,
)
from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85, Arch
from mizzen.targets.rules import Table, by, no_form

SOURCE = "Mizzen's rules for Ethos-U"

Rule = rules.Rule[OperatorFacts]
Measure = rules.Measure[OperatorFacts]

_EVERYWHERE = (
    "ABS ADD ARG_MAX ASSIGN_VARIABLE AVERAGE_POOL_2D BATCH_MATMUL CAST CONCATENATION CONV_2D "
    "DEPTHWISE_CONV_2D ELU EXP EXPAND_DIMS FULLY_CONNECTED GATHER GELU HARD_SWISH LEAKY_RELU LOG "
    "LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG PACK PAD PADV2 PRELU QUANTIZE "
    "READ_VARIABLE REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE "
    "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 RSQRT SLICE SOFTMAX SPLIT SPLIT_V "
    "SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM TANH TILE TRANSPOSE TRANSPOSE_CONV "
    "UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK"
)
_ON_U85 = (
    "DIV EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_NOT LOGICAL_OR NOT_EQUAL "
    "REDUCE_ALL REDUCE_ANY SCATTER_ND SELECT SELECT_V2"
)

OPERATORS: dict[str, tuple[Arch, ...]] = dict(
    sorted(
        [(kind, ALL) for kind in _EVERYWHERE.split()] + [(kind, U85) for kind in _ON_U85.split()]
    )
)
"""Operators that an NPU has a form of, and the architectures that have it."""

REPLACEMENTS = {
    "BROADCAST_TO": "operators broadcast by themselves; leave it out",
    "DEPTH_TO_SPACE": "write it as RESHAPE, TRANSPOSE, RESHAPE",
    "DEQUANTIZE": "let the network give integers (inference_output_type), and convert outside",
    "DIV": "by a constant: MUL with its reciprocal",
    "L2_NORMALIZATION": "write it as MUL, SUM, RSQRT, MUL",
    "LOG_SOFTMAX": "leave it out where only the largest counts, or use SOFTMAX",
    "SHAPE": "export the network with fixed shapes; it becomes a constant",
    "SPACE_TO_DEPTH": "write it as RESHAPE, TRANSPOSE, RESHAPE",
    "SQRT": "write it as MUL with RSQRT",
    "SQUARE": "write it as MUL of the tensor with itself",
}
"""What to write instead of an operator that the NPU has no form of."""

ALLOWANCE = "allow it on the CPU with `--max-cpu-ops`"

INTEGERS = ("INT8", "UINT8", "INT16", "INT32", "INT64")
QUANTIZED = ("INT8", "UINT8", "INT16")
SAME = 0
"""The padding that keeps the extents of a stride of 1."""

PADDED_AVERAGE_KERNEL_MAXIMUM = 8

_QUANTIZE = "quantise it: convert the network with full integer quantisation"
_TO_BYTES = "quantise it to INT8"
_MOVING = ["EXPAND_DIMS", "MIRROR_PAD", "PAD", "PADV2", "RESHAPE", "SQUEEZE", "TRANSPOSE"]
_PARAMETRISED = (
    "MEAN MIRROR_PAD PAD PADV2 REDUCE_MAX REDUCE_MIN SLICE STRIDED_SLICE SUM TILE TRANSPOSE"
)


def rule(
    id: str,
    kinds: str | frozenset[str] = frozenset(OPERATORS),
    archs: tuple[Arch, ...] = ALL,
    source: str = SOURCE,
) -> rules.Head:
    """Begin a row about operators that a text lists or a set holds."""
    return rules.Head(id, source, rules.listed(kinds), archs)


def _tell(tensors: Iterable[TensorFacts]) -> str | None:
    """Tell the type and name of the first tensor, if there is one."""
    tensor = next(iter(tensors), None)
    return None if tensor is None else f"{tensor.dtype} {named(tensor)}"


@rule("integer").must_have(
    f"feature maps of {', '.join(INTEGERS[:-1])} or {INTEGERS[-1]}", _QUANTIZE
)
def _no_integer(operator: OperatorFacts) -> str | None:
    wanted = (*INTEGERS, "BOOL", "RESOURCE")
    return _tell(tensor for tensor in feature_maps(operator) if tensor.dtype not in wanted)


@rule("quantised", WEIGHTED | {"ADD", "AVERAGE_POOL_2D", "MUL", "SOFTMAX", "SUB"}).must_have(
    "a scale for every feature map and for weights", _QUANTIZE
)
def _unquantized(operator: OperatorFacts) -> str | None:
    tensors = feature_maps(operator)
    if (weight := weights(operator)) is not None:
        tensors.append(weight)
    return _tell(tensor for tensor in tensors if tensor.dtype in QUANTIZED and not tensor.scales)


@rule("per-axis", frozenset(OPERATORS) - WEIGHTED).must_have(
    "one scale for each feature map", "use one scale for the whole tensor"
)
def _per_axis(operator: OperatorFacts) -> str | None:
    for tensor in feature_maps(operator):
        if len(tensor.scales) > 1:
            return f"{len(tensor.scales)} scales for {named(tensor)}"
    return None


@rule("32-bit", WEIGHTED).must_have(
    "feature maps of at most 16 bits", "quantise it to INT8 or INT16"
)
def _wide(operator: OperatorFacts) -> str | None:
    return _tell(tensor for tensor in feature_maps(operator) if tensor.dtype in ("INT32", "INT64"))


@rule("constant-parameters", _PARAMETRISED).must_have(
    "constant parameters (axes, sizes, paddings)",
    "export the network with fixed shapes, so that they become constants",
)
def _parameters(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    for tensor in operator.inputs:
        if tensor is not None and tensor is not data and not tensor.constant:
            return f"{named(tensor)}, which the network computes"
    return None


@rule("weight-type", WEIGHTED).must_have("weights of 8 bits", "quantise the weights to INT8")
def _weight_type(operator: OperatorFacts) -> str | None:
    weight = weights(operator)
    return None if weight is None or weight.dtype in ("INT8", "UINT8", "INT4") else weight.dtype


@rule("constant-weights", WEIGHTED - {"FULLY_CONNECTED"}).must_have(
    "constant weights", "write it as BATCH_MATMUL, which multiplies what is computed"
)
def _computed_weights(operator: OperatorFacts) -> str | None:
    weight = weights(operator)
    return None if weight is None or weight.constant else f"{named(weight)}, which is computed"


@rule("constant-bias", WEIGHTED).must_have("a constant bias", "leave the bias out, and ADD it")
def _computed_bias(operator: OperatorFacts) -> str | None:
    tensor = bias(operator)
    return None if tensor is None or tensor.constant else f"{named(tensor)}, which is computed"


@rule("bias-type", WEIGHTED).must_have("a bias of INT32 or INT64", "quantise the bias again")
def _bias_type(operator: OperatorFacts) -> str | None:
    tensor = bias(operator)
    return None if tensor is None or tensor.dtype in ("INT32", "INT64") else tensor.dtype


@rule("average-kernel", "AVERAGE_POOL_2D").must_have(
    f"a kernel up to {PADDED_AVERAGE_KERNEL_MAXIMUM}x{PADDED_AVERAGE_KERNEL_MAXIMUM} with padding",
    "pool in several steps, or with VALID padding",
)
def _average_kernel(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    if data is None or len(data.shape) != 4 or operator.option("padding") != SAME:
        return None
    sides = ("h", "filter_height"), ("w", "filter_width")
    kernel = tuple(operator.option(size, 1) for _, size in sides)
    strides = [operator.option(f"stride_{side}", 1) for side, _ in sides]
    extents = zip(data.shape[1:3], operator.outputs[0].shape[1:3], kernel, strides, strict=True)
    padded = any((given - 1) * step + size > taken for taken, given, size, step in extents)
    if not padded or max(kernel) <= PADDED_AVERAGE_KERNEL_MAXIMUM:
        return None
    return f"a kernel of {by(kernel)} with padding"


@rule("matrix-type", "BATCH_MATMUL FULLY_CONNECTED", U55_U65).must_have(
    "INT8 where both factors are computed", _TO_BYTES
)
def _matrix_type(operator: OperatorFacts) -> str | None:
    left, right = operator.input(0), operator.input(1)
    if left is None or right is None:
        return None
    is_product = operator.kind == "BATCH_MATMUL" or not right.constant
    return left.dtype if is_product and left.dtype != "INT8" else None


def _types(*wanted: str) -> Measure:
    """Measure whether the first input has one of some types, and the output the same."""

    def measure(operator: OperatorFacts) -> str | None:
        data, output = data_input(operator), operator.outputs[0]
        if data is None or (data.dtype in wanted and output.dtype == data.dtype):
            return None
        return data.dtype if output.dtype == data.dtype else f"{data.dtype} in, {output.dtype} out"

    return measure


LSTM_PARTS = (
    (range(1, 9), True, "a gate without weights (coupled input and forget gates)"),
    (range(9, 12), False, "peephole weights"),
    (range(16, 18), False, "projection weights or bias"),
    (range(20, 24), False, "normalisation coefficients"),
)
"""Inputs of an LSTM that make it another one where they are absent, or there."""


@rule("plain-lstm", "UNIDIRECTIONAL_SEQUENCE_LSTM").must_have(
    "weights for every gate, and no peephole connections, projection or normalisation",
    "build the layer without it",
)
def _plain_lstm(operator: OperatorFacts) -> str | None:
    for places, absent, what in LSTM_PARTS:
        if any((operator.input(place) is None) == absent for place in places):
            return what
    return None


RULES: tuple[Rule, ...] = (
    _no_integer,
    _wide,
    _unquantized,
    _per_axis,
    _parameters,
    _weight_type,
    _computed_weights,
    _computed_bias,
    _bias_type,
    _average_kernel,
    _matrix_type,
    *(
        rule(f"{kind.lower().replace('_', '-')}-type", kind).must_have(limit, help)(_types(*wanted))
        for kind, limit, help, wanted in (
            ("ELU", "INT8 in and out", _TO_BYTES, ("INT8",)),
            ("GELU", "INT8 or UINT8, in and out", _TO_BYTES, ("INT8", "UINT8")),
            ("HARD_SWISH", "INT8 or UINT8, in and out", _TO_BYTES, ("INT8", "UINT8")),
        )
    ),
    _plain_lstm,
)
"""Every rule, in the order in which breaches are told."""

TABLE = Table(RULES)


def breaches(operator: OperatorFacts) -> tuple[Reason, ...]:
    """Return every rule that an operator breaks, the most telling first."""
    kind, arch = operator.kind, operator.arch
    having = OPERATORS.get(kind, ())
    if arch not in having:
        help = REPLACEMENTS.get(kind, "replace it by operators that `mizzen targets` lists")
        return (no_form(kind, arch, having, f"{help}; or {ALLOWANCE}", SOURCE),)
    return tuple(TABLE.reasons(operator, kind, arch))


# What TensorFlow Lite's kernels refuse of an operator, or read otherwise than its file says

SYMMETRIC = "TensorFlow Lite 8-bit quantization specification"
"""Weights are symmetric, and kernels do not read their zero points; the NPU does."""

KERNELS = "TensorFlow Lite, what kernels/activations.cc and reduce.cc prepare"


@rule("weights-zero", WEIGHTED, source=SYMMETRIC).must_have(
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


@rule("fixed-scale", "LOGISTIC SOFTMAX TANH", source=KERNELS).must_have(
    "an output of scale 1/256, where it has 8 bits, or 1/32768 and zero point 0",
    "quantise its output so, as TensorFlow Lite's kernels ask for, and QUANTIZE after it",
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


@rule("reduced-quantisation", "REDUCE_MAX REDUCE_MIN", source=KERNELS).must_have(
    "one scale and zero point for input and output",
    "quantise its output like its input, as TensorFlow Lite's kernels ask for, and QUANTIZE it",
)
def _reduced(operator: OperatorFacts) -> str | None:
    data, output = data_input(operator), operator.outputs[0]
    if data is None or (data.scales, data.zero_points) == (output.scales, output.zero_points):
        return None
    return f"{_quantization(data)} and {_quantization(output)}"


def _quantization(tensor: TensorFacts) -> str:
    if not tensor.scales:
        return f"none of {named(tensor)}"
    return f"scale {tensor.scales[0]:g}, zero point {tensor.zero_points[0]} of {named(tensor)}"


OF_KERNELS = Table((_weights_zero, _fixed_scale, _reduced))


def against_kernels(operator: OperatorFacts) -> tuple[Reason, ...]:
    """Return what TensorFlow Lite's kernels refuse of an operator, or read otherwise."""
    return tuple(OF_KERNELS.reasons(operator, operator.kind, operator.arch))
