"""Rules of what moves a kernel over its input: convolution and pooling."""

from __future__ import annotations

from mizzen.targets.ethos_u.commands import ALL, U55_U65, Arch
from mizzen.targets.ethos_u.legal.facts import OperatorFacts
from mizzen.targets.ethos_u.legal.rule import Rule, data_input, operators, weights

SAME = 0
"""The padding that keeps the extents of a stride of 1."""

STRIDE_MAXIMUM = 3
PADDED_AVERAGE_KERNEL_MAXIMUM = 8
POOL_HEIGHT_MAXIMUM = 256
POOL_ELEMENTS_MAXIMUM = 1 << 16


def _strides(operator: OperatorFacts) -> tuple[int, int]:
    return operator.option("stride_h", 1), operator.option("stride_w", 1)


def _kernel(operator: OperatorFacts) -> tuple[int, int]:
    """Return height and width of the kernel, before dilation."""
    weight = weights(operator)
    if weight is not None and len(weight.shape) == 4:
        return weight.shape[1], weight.shape[2]
    return operator.option("filter_height", 1), operator.option("filter_width", 1)


def _dilations(operator: OperatorFacts) -> tuple[int, int]:
    return operator.option("dilation_h_factor", 1), operator.option("dilation_w_factor", 1)


def _padded(operator: OperatorFacts) -> bool:
    """Whether the border is really padded, which SAME does not always need."""
    data = data_input(operator)
    if operator.option("padding") != SAME or data is None or not operator.outputs:
        return False
    axes = zip(
        data.nhwc[1:3],
        operator.outputs[0].nhwc[1:3],
        _kernel(operator),
        _strides(operator),
        _dilations(operator),
        strict=True,
    )
    return any(
        (output - 1) * stride + (kernel - 1) * dilation + 1 > extent
        for extent, output, kernel, stride, dilation in axes
    )


def _by(pair: tuple[int, int]) -> str:
    return f"{pair[0]}x{pair[1]}"


def _unpadded_stride(operator: OperatorFacts, _: Arch) -> str | None:
    strides, dilations = _strides(operator), _dilations(operator)
    if max(strides) <= STRIDE_MAXIMUM or (dilations == (1, 1) and not _padded(operator)):
        return None
    why = "padding" if dilations == (1, 1) else f"dilation {_by(dilations)}"
    return f"stride {_by(strides)} with {why}"


def _stride(operator: OperatorFacts, _: Arch) -> str | None:
    strides = _strides(operator)
    return None if max(strides) <= STRIDE_MAXIMUM else f"stride {_by(strides)}"


def _average_kernel(operator: OperatorFacts, arch: Arch) -> str | None:
    kernel = _kernel(operator)
    if not _padded(operator):
        return _pool_kernel(operator, arch)
    fits = max(kernel) <= PADDED_AVERAGE_KERNEL_MAXIMUM
    return None if fits else f"a kernel of {_by(kernel)} with padding"


def _pool_kernel(operator: OperatorFacts, _: Arch) -> str | None:
    height, width = _kernel(operator)
    fits = height <= POOL_HEIGHT_MAXIMUM and height * width <= POOL_ELEMENTS_MAXIMUM
    return None if fits else f"a kernel of {_by((height, width))}"


def _transposed_strides(operator: OperatorFacts, _: Arch) -> str | None:
    data = data_input(operator)
    strides, kernel = _strides(operator), _kernel(operator)
    if data is None or strides in ((1, 1), (2, 2)):
        return None
    flat = data.nhwc[1] == kernel[0] == 1 and strides == (1, 2)
    narrow = data.nhwc[2] == kernel[1] == 1 and strides == (2, 1)
    return None if flat or narrow else f"stride {_by(strides)}"


def _transposed_shape(operator: OperatorFacts, _: Arch) -> str | None:
    data = data_input(operator)
    if data is None or not operator.outputs:
        return None
    more: tuple[int, ...] = (0, 0)
    strides, kernel = _strides(operator), _kernel(operator)
    if operator.option("padding") != SAME:
        more = tuple(max(0, k - s) for k, s in zip(kernel, strides, strict=True))
    rows = zip(data.nhwc[1:3], strides, more, strict=True)
    wanted = tuple(extent * stride + extra for extent, stride, extra in rows)
    output = operator.outputs[0].nhwc[1:3]
    return None if output == wanted else f"{_by(output)} instead of {wanted[0]}x{wanted[1]}"


_STRIDE_HELP = "use a smaller stride and pooling, or VALID padding without dilation"

KERNEL_RULES: tuple[Rule, ...] = (
    Rule(
        "stride",
        operators("CONV_2D AVERAGE_POOL_2D MAX_POOL_2D"),
        U55_U65,
        f"strides up to {STRIDE_MAXIMUM}, or neither dilation nor padding",
        _unpadded_stride,
        _STRIDE_HELP,
    ),
    Rule(
        "depthwise-stride",
        operators("DEPTHWISE_CONV_2D"),
        U55_U65,
        f"strides up to {STRIDE_MAXIMUM}",
        _stride,
        "use a smaller stride and pooling",
    ),
    Rule(
        "average-kernel",
        operators("AVERAGE_POOL_2D"),
        ALL,
        f"a kernel up to {PADDED_AVERAGE_KERNEL_MAXIMUM}x{PADDED_AVERAGE_KERNEL_MAXIMUM} with "
        f"padding, else up to {POOL_HEIGHT_MAXIMUM} high and of {POOL_ELEMENTS_MAXIMUM} elements",
        _average_kernel,
        "pool in several steps, or with VALID padding",
    ),
    Rule(
        "max-kernel",
        operators("MAX_POOL_2D"),
        ALL,
        f"a kernel up to {POOL_HEIGHT_MAXIMUM} high and of {POOL_ELEMENTS_MAXIMUM} elements",
        _pool_kernel,
        "pool in several steps",
    ),
    Rule(
        "transposed-stride",
        operators("TRANSPOSE_CONV"),
        U55_U65,
        "strides 1x1 or 2x2, or 2 along the only axis that input and kernel have",
        _transposed_strides,
        "upscale by 2 in several steps, or with RESIZE_NEAREST_NEIGHBOR and CONV_2D",
    ),
    Rule(
        "transposed-shape",
        operators("TRANSPOSE_CONV"),
        ALL,
        "an output of input times stride, plus kernel minus stride without padding",
        _transposed_shape,
        "choose that output shape, and STRIDED_SLICE or PAD it",
    ),
)
"""Rules of convolution and pooling."""
