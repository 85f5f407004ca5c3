"""Rules for TOSA operations that move a kernel over their input: convolution and pooling."""

from __future__ import annotations

from mizzen.graph import DType, Operation, Value
from mizzen.targets.ethos_u.legal.rule import ALL, U55_U65, U85
from mizzen.targets.ethos_u.legal.tosa_rule import (
    FOUND,
    MOVES,
    WRONG,
    TosaRule,
    by,
    input_type,
    is_fixed,
    operations,
)

STRIDE_MAXIMUM = 3
PADDED_AVERAGE_KERNEL_MAXIMUM = 8
DEPTH_MAXIMUM = 1 << 16

CONVOLUTIONS = "CONV2D CONV3D DEPTHWISE_CONV2D"
WINDOWS = f"{CONVOLUTIONS} AVG_POOL2D MAX_POOL2D TRANSPOSE_CONV2D"


def _unpadded_stride(operation: Operation) -> str | None:
    """Strides of three dimensions are those of rows and columns, of images of one depth each."""
    strides: tuple[int, ...] = tuple(operation["stride"])[-2:]
    if max(strides) <= STRIDE_MAXIMUM:
        return None
    dilations = tuple(operation.attributes.get("dilation", (1, 1)))[-2:]
    if max(dilations) > 1:
        return f"stride {by(strides)} with dilation {by(dilations)}"
    return f"stride {by(strides)} with padding" if any(operation["pad"][-4:]) else None


def _stride(operation: Operation) -> str | None:
    strides = tuple(operation["stride"])
    return None if max(strides) <= STRIDE_MAXIMUM else f"stride {by(strides)}"


def _padded_kernel(operation: Operation) -> str | None:
    kernel = tuple(operation["kernel"])
    if max(kernel) <= PADDED_AVERAGE_KERNEL_MAXIMUM or not any(operation["pad"]):
        return None
    return f"a kernel of {by(kernel)} with padding"


def _input_depth(operation: Operation) -> str | None:
    depth = operation.operands[0].shape[-1]
    return None if depth <= DEPTH_MAXIMUM else str(depth)


def _kernel_depth(operation: Operation) -> str | None:
    depth = operation.operands[1].shape[1]
    return None if depth == 1 else str(depth)


def _computed(operation: Operation) -> str | None:
    _, weights, bias, *_ = operation.operands
    named = [("weights", weights), ("a bias", bias)]
    computed = [name for name, value in named if not is_fixed(value)]
    return f"{' and '.join(computed)} that the network computes or takes" if computed else None


def _bare_sum(operation: Operation) -> str | None:
    result = operation.result
    if result.dtype is not DType.INT48:
        return None
    kinds = [user.kind for user in result.uses]
    others = [kind for kind in kinds if kind != "RESCALE" and kind not in MOVES]
    if others:
        return f"one that {others[0]} takes"
    return None if kinds else "one that leaves the network"


def _transposed_stride(operation: Operation) -> str | None:
    strides = tuple(operation["stride"])
    data, weights, *_ = operation.operands
    if strides in ((1, 1), (2, 2)):
        return None
    flat = strides == (1, 2) and data.shape[1] == weights.shape[1] == 1
    narrow = strides == (2, 1) and data.shape[2] == weights.shape[2] == 1
    return None if flat or narrow else f"stride {by(strides)}"


def _padded_before(operation: Operation) -> str | None:
    top, _, left, _ = operation["out_pad"]
    return None if max(top, left) <= 0 else f"{top} rows above and {left} columns to the left"


def _products(operation: Operation) -> tuple[int, int, int]:
    left, right = (value.shape for value in operation.operands[:2])
    return left[1], left[2], right[2]


def _long_product(operation: Operation) -> str | None:
    _, inner, columns = _products(operation)
    return None if max(inner, columns) <= DEPTH_MAXIMUM else f"{inner} and {columns}"


def _many_rows(operation: Operation) -> str | None:
    rows, _, _ = _products(operation)
    return None if rows <= DEPTH_MAXIMUM else f"{rows}"


def _lone_48(operation: Operation) -> str | None:
    value: Value = operation.operands[0]
    if value.dtype is not DType.INT48 or value.producer is None:
        return None
    kind = value.producer.kind
    return None if kind in CONVOLUTIONS.split() or kind in MOVES else f"one of {kind}"


KERNEL_RULES: tuple[TosaRule, ...] = (
    TosaRule(
        "stride",
        operations("AVG_POOL2D CONV2D CONV3D MAX_POOL2D"),
        U55_U65,
        f"strides up to {STRIDE_MAXIMUM}, or neither dilation nor padding",
        _unpadded_stride,
        "use a smaller stride and pooling, or no padding and no dilation",
    ),
    TosaRule(
        "depthwise-stride",
        operations("DEPTHWISE_CONV2D"),
        U55_U65,
        f"strides up to {STRIDE_MAXIMUM}",
        _stride,
        "use a smaller stride and pooling",
        FOUND,
    ),
    TosaRule(
        "average-kernel",
        operations("AVG_POOL2D"),
        U55_U65,
        f"a kernel up to {PADDED_AVERAGE_KERNEL_MAXIMUM}x{PADDED_AVERAGE_KERNEL_MAXIMUM}, or no "
        "padding",
        _padded_kernel,
        "pool in several steps, or without padding",
    ),
    TosaRule(
        "depth",
        operations(WINDOWS),
        ALL,
        f"an input of up to {DEPTH_MAXIMUM} channels",
        _input_depth,
        "split the channels",
    ),
    TosaRule(
        "kernel-depth",
        operations("CONV3D"),
        U55_U65,
        "a kernel of depth 1",
        _kernel_depth,
        "write it as a sum of 2-dimensional convolutions",
    ),
    TosaRule(
        "computed-weights",
        operations(CONVOLUTIONS),
        U55_U65,
        "constant weights and a constant bias",
        _computed,
        "write the product with computed numbers as a matmul",
        FOUND,
    ),
    TosaRule(
        "computed-weights-u85",
        operations("CONV3D"),
        U85,
        "constant weights and a constant bias",
        _computed,
        "write the product with computed numbers as a matmul",
    ),
    TosaRule(
        "transposed-computed-weights",
        operations("TRANSPOSE_CONV2D"),
        ALL,
        "constant weights and a constant bias",
        _computed,
        "use constant weights",
    ),
    TosaRule(
        "sum-of-48-bits",
        operations(CONVOLUTIONS),
        U55_U65,
        "a 48-bit sum that only RESCALE takes",
        _bare_sum,
        "quantise the result to 8 or 16 bits",
    ),
    TosaRule(
        "rescaled-48-bits",
        operations("RESCALE"),
        U55_U65,
        "a 48-bit number that is the sum of a convolution",
        _lone_48,
        "quantise to 8 bits",
    ),
    TosaRule(
        "transposed-type",
        operations("TRANSPOSE_CONV2D"),
        U55_U65,
        "an i8 input",
        input_type(DType.INT8),
        "quantise its input to 8 bits, or use nearest upsampling and a convolution",
        FOUND,
    ),
    TosaRule(
        "transposed-stride",
        operations("TRANSPOSE_CONV2D"),
        U55_U65,
        "strides 1x1 or 2x2, or 2 along the only axis that input and kernel have",
        _transposed_stride,
        "upscale by 2 in several steps, or with nearest upsampling and a convolution",
    ),
    TosaRule(
        "transposed-padding",
        operations("TRANSPOSE_CONV2D"),
        U55_U65,
        "nothing added above or to the left of the output",
        _padded_before,
        "pad the output with pad()",
        WRONG,
    ),
    TosaRule(
        "matmul-type",
        operations("MATMUL"),
        U55_U65,
        "i8 operands",
        input_type(DType.INT8),
        "quantise its operands to 8 bits",
    ),
    TosaRule(
        "matmul-extents",
        operations("MATMUL"),
        U55_U65,
        f"up to {DEPTH_MAXIMUM} columns of both operands",
        _long_product,
        "split the product",
    ),
    TosaRule(
        "matmul-rows",
        operations("MATMUL"),
        U55_U65,
        f"up to {DEPTH_MAXIMUM} rows",
        _many_rows,
        "split the rows",
        WRONG,
    ),
)
"""Rules of convolution, pooling and products."""
