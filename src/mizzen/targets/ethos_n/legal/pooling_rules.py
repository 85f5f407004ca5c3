"""Rules of pooling and of the mean over planes.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.legal.tensor_rules import (
    BATCH,
    BOTH,
    OUTPUT_INFO,
    V23_02,
    V25_03,
    VALID,
    Case,
    Measure,
    OperationRule,
    Step,
    data_type,
    depth,
    first,
    input_per_tensor,
    input_zero_point,
    padding_text,
    rule,
    same_paddings,
)
from mizzen.targets.ethos_n.network import MeanXy, Pooling, PoolingType
from mizzen.targets.ethos_n.tensors import Padding, Shape, Stride, TensorInfo
from mizzen.targets.rules import Breach, Level

MEAN_SIZES = (7, 8)
"""Planes whose mean can be taken: 7x7 and 8x8."""

AVERAGE = Pooling((3, 3), Stride(1, 1), Padding(1, 1, 1, 1), PoolingType.AVG)
"""The one average over less than the plane."""

PAD_AFTER = Padding(0, 1, 0, 1)
LARGEST_WIDTH = 417
"""Of what is pooled 3x3 with a stride of 2, in elements."""
LARGEST_VALID = 9
LARGEST_SAME = 17
"""Windows of a stride of 1, without and with padding."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window of max pooling with a stride of 2, square, and the planes that it goes with.

    parity  the remainder by 2 of both extents of the input; None for any
    """

    size: int
    padding: Padding
    parity: int | None

    @property
    def pooling(self) -> Pooling:
        """The operation."""
        return Pooling((self.size, self.size), Stride(2, 2), self.padding, PoolingType.MAX)

    @property
    def text(self) -> str:
        """The window in words."""
        padded = "without padding" if self.padding == VALID else "padded by 1 at the end"
        return f"{self.size}x{self.size} {padded}"


POINT = Window(1, VALID, None)
PAIR = Window(2, VALID, 0)
PAIR_PADDED = Window(2, PAD_AFTER, 1)
TRIPLE = Window(3, VALID, 1)
TRIPLE_PADDED = Window(3, PAD_AFTER, 0)
WINDOWS = (POINT, PAIR, PAIR_PADDED, TRIPLE, TRIPLE_PADDED)
"""All windows of max pooling with a stride of 2."""

OTHER_POOLING = "use another window, or a convolution in its place"
CROP = "crop or pad the input, so that both extents are"


_ANY_OF_WINDOWS = (
    f"one of these windows for max pooling: {', '.join(window.text for window in WINDOWS)}"
)


def _text(operation: Pooling) -> str:
    height, width = operation.size
    stride = f"stride {operation.stride.y}x{operation.stride.x}"
    return f"a window of {height}x{width}, {stride}, {padding_text(operation.padding)}"


def _plane(info: TensorInfo) -> str:
    return f"{info.height}x{info.width}"


def _is(operation: Pooling, type: PoolingType, stride: int) -> bool:
    return operation.type is type and operation.stride == Stride(stride, stride)


@rule("window").must_have(
    "a window and strides of at least 1", "export the network again", "Invalid pooling size/stride"
)
def _zero_window(case: Case[Pooling]) -> str | None:
    operation = case.operation
    if all((*operation.size, operation.stride.x, operation.stride.y)):
        return None
    return _text(operation)


@rule("average-window", Level.ESTIMATE_ONLY).must_have(
    "for an average a window of the whole plane of 7x7 or 8x8, without padding, or one of 3x3 "
    "with stride 1, padded by 1 at each side",
    "use one of these windows, or a depthwise convolution of equal weights",
    "Unsupported configuration in AVG pooling",
)
def _average(case: Case[Pooling]) -> str | None:
    operation, info = case.operation, case.input
    if operation.type is not PoolingType.AVG:
        return None
    height, width = operation.size
    if operation.padding == VALID and operation.size == (info.height, info.width):
        allowed = height == width and width in MEAN_SIZES
    else:
        allowed = operation == AVERAGE
    return None if allowed else f"{_text(operation)} of a plane of {_plane(info)}"


def average_bytes(shape: Shape, capabilities: Capabilities) -> int:
    """Return the SRAM that an average 3x3 needs in each bank; planes are not split."""
    _, height, width, channels = shape
    _, brick_height, brick_width, _ = capabilities.brick_group_shape
    plane = -(-height // brick_height) * brick_height * (-(-width // brick_width) * brick_width)
    stripes = 2 if channels > capabilities.srams else 1
    return stripes * (plane + plane) + capabilities.max_ple_bytes


@rule("average-sram", Level.ESTIMATE_ONLY).must_have(
    "for an average 3x3 planes that fit in a bank of SRAM: input and output in whole bricks of "
    "8x8, twice if there are more channels than banks, and 4096 bytes",
    "use a depthwise convolution of equal weights, or a variant with more SRAM",
    "AVG pooling 3x3_1_1: maximum input width x height cannot fit into SRAM",
)
def _average_bank(case: Case[Pooling]) -> str | None:
    if case.operation != AVERAGE:
        return None
    there = -(-case.capabilities.sram_bytes // case.capabilities.srams)
    needed = average_bytes(case.input.shape, case.capabilities)
    return None if needed <= there else f"{needed} of {there} bytes"


def _max_window(case: Case[Pooling]) -> str | None:
    operation = case.operation
    if operation.type is PoolingType.AVG or any(window.pooling == operation for window in WINDOWS):
        return None
    return _text(operation)


@rule("max-window", Level.ESTIMATE_ONLY, V25_03).must_have(
    f"with a stride of 2x2 {_ANY_OF_WINDOWS}",
    OTHER_POOLING,
    "Unsupported configuration in Max pooling with stride 2",
)
def _max_window_of_stride_2(case: Case[Pooling]) -> str | None:
    return _max_window(case) if _is(case.operation, PoolingType.MAX, 2) else None


@rule("max-stride", Level.ESTIMATE_ONLY, V25_03).must_have(
    "a stride of 1x1 or 2x2 for max pooling",
    "use a stride of 1x1 or 2x2",
    "Unsupported stride for max pooling - must be 1,1 or 2,2",
)
def _max_stride(case: Case[Pooling]) -> str | None:
    operation = case.operation
    if operation.type is PoolingType.AVG or operation.stride in (Stride(1, 1), Stride(2, 2)):
        return None
    return f"{operation.stride.y}x{operation.stride.x}"


def _parity(window: Window) -> Measure[Pooling]:
    def measure(case: Case[Pooling]) -> str | None:
        info = case.input
        if case.operation != window.pooling:
            return None
        kept = {info.height % 2, info.width % 2} == {window.parity}
        return None if kept else _plane(info)

    return measure


@rule("max-width", Level.ESTIMATE_ONLY, BOTH).must_have(
    f"an input of at most {LARGEST_WIDTH} elements in width for max pooling 3x3",
    "pool 2x2, or split the input along its width",
    "Max pooling 3x3_2_2: maximum input width (%d) exceeded",
)
def _wide(case: Case[Pooling]) -> Breach | None:
    if case.operation not in (TRIPLE.pooling, TRIPLE_PADDED.pooling):
        return None
    width = case.input.width
    return None if width <= LARGEST_WIDTH else Breach(str(width), (LARGEST_WIDTH,))


@rule("max-unstrided", Level.ESTIMATE_ONLY, V25_03).must_have(
    f"with a stride of 1x1 no padding and a window of at most {LARGEST_VALID}, or SAME padding "
    f"and one of at most {LARGEST_SAME}",
    "pool several times with smaller windows",
    "Unsupported pooling size and padding for max pooling with stride 1 - must be VALID with "
    f"size <= {LARGEST_VALID} or SAME with size <= {LARGEST_SAME}",
)
def _unstrided_window(case: Case[Pooling]) -> str | None:
    operation = case.operation
    if not _is(operation, PoolingType.MAX, 1):
        return None
    largest = max(operation.size)
    if operation.padding == VALID and largest <= LARGEST_VALID:
        return None
    same = same_paddings(case.input.shape, operation.size, operation.stride)
    if operation.padding in same and largest <= LARGEST_SAME:
        return None
    return _text(operation)


def unstrided_extent(capabilities: Capabilities) -> int:
    """Return the largest extent that can be pooled along with a stride of 1.

    Input and output are in the SRAM together, whole along it, one brick group wide otherwise.
    """
    _, _, brick_width, brick_channels = capabilities.brick_group_shape
    each = (capabilities.sram_bytes - capabilities.max_ple_bytes) // 2
    extent = each // (brick_width * brick_channels)
    return extent - extent % brick_width


@rule("max-sram", Level.ESTIMATE_ONLY, V25_03).must_have(
    "with a stride of 1x1 pooled extents that fit in the SRAM",
    "split the input along the other axis, or take a variant with more SRAM",
    "Input tensor for max pooling with stride 1 is too large - width and height are limited to %d",
)
def _unstrided_plane(case: Case[Pooling]) -> Breach | None:
    operation, info = case.operation, case.input
    if not _is(operation, PoolingType.MAX, 1):
        return None
    height, width = operation.size
    extent = unstrided_extent(case.capabilities)
    if (width <= 1 or info.width <= extent) and (height <= 1 or info.height <= extent):
        return None
    return Breach(f"{_plane(info)} where {extent} fit", (extent,))


@rule("max-plane", Level.ESTIMATE_ONLY).must_have(
    "an input at least as large as the window of max pooling",
    "use a smaller window",
    "Input size must not be smaller than the pooling size",
)
def _small_plane(case: Case[Pooling]) -> str | None:
    operation, info = case.operation, case.input
    height, width = operation.size
    if operation.type is PoolingType.AVG or (info.height >= height and info.width >= width):
        return None
    return f"a plane of {_plane(info)} for a window of {height}x{width}"


def _parity_rule(window: Window, name: str, padding: str) -> OperationRule[Pooling]:
    parity = "odd" if window.parity else "even"
    return rule("max-parity", Level.ESTIMATE_ONLY).must_have(
        f"{parity} extents of the input for max pooling {window.text}",
        f"{CROP} {parity}",
        f"Max pooling {name} {padding}: input sizes must be {parity}",
    )(_parity(window))


POOLING: tuple[Step[Pooling], ...] = (
    BATCH,
    depth("input-depth", "Input to pooling layer", first),
    data_type("input-type", "Input to pooling layer", first),
    _zero_window,
    *input_per_tensor("Pooling"),
    input_zero_point(),
    OUTPUT_INFO,
    _average,
    _average_bank,
    rule("max-window", Level.ESTIMATE_ONLY, V23_02).must_have(
        f"a stride of 2x2 and {_ANY_OF_WINDOWS}",
        OTHER_POOLING,
        "Unsupported configuration in Max pooling",
    )(_max_window),
    _max_stride,
    _max_window_of_stride_2,
    _parity_rule(PAIR, "2x2_2_2", "with no padding"),
    _parity_rule(PAIR_PADDED, "2x2_2_2", "with padding"),
    _wide,
    _parity_rule(TRIPLE, "3x3_2_2", "with no padding"),
    _parity_rule(TRIPLE_PADDED, "3x3_2_2", "with padding"),
    _unstrided_window,
    _unstrided_plane,
    _small_plane,
)


@rule("plane").must_have(
    "a plane of 7x7 or 8x8",
    "reduce the plane to 7x7 or 8x8 before it",
    "MeanXy is supported for 7x7 and 8x8 as HeightxWidth only",
)
def _mean(case: Case[MeanXy]) -> str | None:
    info = case.input
    kept = info.height == info.width and info.width in MEAN_SIZES
    return None if kept else _plane(info)


MEAN_XY: tuple[Step[MeanXy], ...] = (
    BATCH,
    depth("input-depth", "Input to MeanXy layer", first),
    data_type("input-type", "Input to MeanXy layer", first),
    *input_per_tensor("Mean"),
    input_zero_point(),
    _mean,
    OUTPUT_INFO,
)
