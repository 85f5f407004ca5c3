"""Rules of what moves the elements of a feature map: reshape, blocks, resize, padding.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp`; `StandalonePadding` is of 25.03
only.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.legal.operation_rule import (
    Case,
    Measure,
    OperationRule,
    Step,
    rule,
    shape_text,
)
from mizzen.targets.ethos_n.legal.quantization_rules import (
    input_per_tensor,
    input_zero_point,
    output_zero_point,
)
from mizzen.targets.ethos_n.legal.tensor_rules import (
    BATCH,
    FULL_OUTPUT_INFO,
    OUTPUT_INFO,
    batch,
    data_type,
    depth,
    first,
    input_layout,
    output,
)
from mizzen.targets.ethos_n.legal.window_padding import REGISTER_LARGEST, padding_text, sides
from mizzen.targets.ethos_n.network import (
    DepthToSpace,
    Reshape,
    Resize,
    SpaceToDepth,
    StandalonePadding,
)
from mizzen.targets.ethos_n.tensors import TensorInfo
from mizzen.targets.rules import Level

BLOCK = 2
"""Block of `DepthToSpace` in elements along both axes."""
UPSCALE = 2
BRICK_BYTES = 8 * 8
"""One channel of a brick."""


@rule("elements").must_have(
    "as many elements before as after",
    "export the network again",
    "Total elements in the input doesn't match new dimensions",
)
def _elements(case: Case[Reshape]) -> str | None:
    # The library takes the size of the output as that of 8-bit elements, whatever the input's are.
    given, made = case.input, case.outputs[0]
    if given.elements * given.data_type.dtype.itemsize == made.elements:
        return None
    return f"{shape_text(given)} to {shape_text(made)}"


@rule("channels").must_have(
    "a multiple of the squared block as channels",
    "export the network again",
    "Number of channels of input must be an exact multiple of the square of the block size",
)
def _uneven_channels(case: Case[DepthToSpace]) -> str | None:
    square, channels = case.operation.block**2, case.input.channels
    # The library divides by a block of 0.
    if square and channels % square == 0:
        return None
    return f"{channels} channels for blocks of {case.operation.block}"


@rule("block", Level.ESTIMATE_ONLY).must_have(
    f"blocks of {BLOCK}x{BLOCK}",
    "do it several times, each with a block of 2",
    "Only block size of 2 is supported",
)
def _other_block(case: Case[DepthToSpace]) -> str | None:
    block = case.operation.block
    return None if block == BLOCK else str(block)


@rule("block").must_have(
    "blocks of at least 2x2", "leave it out", "Block size must be larger than 1"
)
def _small_block(case: Case[SpaceToDepth]) -> str | None:
    block = case.operation.block
    return None if block > 1 else str(block)


@rule("plane").must_have(
    "height and width that are multiples of the block",
    "pad or crop the input",
    "Input width and height must be a multiple of the block size",
)
def _uneven_plane(case: Case[SpaceToDepth]) -> str | None:
    block, info = case.operation.block, case.input
    if info.height % block == 0 and info.width % block == 0:
        return None
    return f"{info.height}x{info.width} for blocks of {block}"


def space_to_depth_bytes(info: TensorInfo, block: int, capabilities: Capabilities) -> int:
    """Return the SRAM that the two passes over one row of blocks need.

    The second pass writes from the end of the SRAM over what the first has left. There are `block`
    parts of the first, which are never the smaller, and one of the second.
    """
    height = min(info.height, block)
    banks = min(capabilities.srams, block * info.channels)
    if not banks:
        return 0
    while block * info.channels % banks:
        banks -= 1
    step = 8 * banks
    first = -(-info.width * info.channels // step) * -(-height // (8 * block))
    second = -(-block * info.channels // step) * -(-info.width * height // (8 * block**2))
    return BRICK_BYTES * (first * block + second) * capabilities.srams


@rule("sram").must_have(
    "an input of which a row of blocks fits in the SRAM, in both passes",
    "split the input along its width or channels, or take a variant with more SRAM",
    "The tensor is too large",
)
def _two_passes(case: Case[SpaceToDepth]) -> str | None:
    there = case.capabilities.sram_bytes
    needed = space_to_depth_bytes(case.input, case.operation.block, case.capabilities)
    return None if needed <= there else f"{needed} of {there} bytes"


@rule("estimate", Level.ESTIMATE_ONLY).must_have(
    "another form", "write it as a convolution whose kernel and stride are the block"
)
def _never(case: Case[SpaceToDepth]) -> str | None:
    return f"a block of {case.operation.block}"


def _upscaled(along_width: bool) -> Measure[Resize]:
    def measure(case: Case[Resize]) -> str | None:
        operation, info = case.operation, case.input
        new = operation.width if along_width else operation.height
        old = info.width if along_width else info.height
        if new in (UPSCALE * old, UPSCALE * old - 1):
            return None
        return f"{new} where the input has {old}"

    return measure


@rule("parity", Level.SUPPORTED).must_have(
    "a new height and width both even or both odd",
    "resize both axes to twice the old, or both to 1 less",
    "Requested width and height have different parity, result might be inaccurate",
)
def _parity(case: Case[Resize]) -> str | None:
    height, width = case.operation.height, case.operation.width
    return None if height % 2 == width % 2 else f"{height}x{width}"


def _resize_rule(axis: str, measure: Measure[Resize]) -> OperationRule[Resize]:
    return rule(axis).must_have(
        f"a new {axis} of twice the old, or 1 less",
        "resize by 2, several times if need be",
        f"Requested {axis} isn't supported",
    )(measure)


@rule("empty").must_have("an input with elements", "leave it out", "Output tensor would be empty")
def _no_elements(case: Case[StandalonePadding]) -> str | None:
    return None if case.input.elements else f"one of {shape_text(case.input)}"


@rule("padding").must_have(
    f"at most {REGISTER_LARGEST} elements of padding at each side",
    "pad several times",
    "Padding not supported",
)
def _sides(case: Case[StandalonePadding]) -> str | None:
    padding = case.operation.padding
    kept = max(sides(padding)) <= REGISTER_LARGEST
    return None if kept else padding_text(padding)


RESHAPE: tuple[Step[Reshape], ...] = (
    batch(first, output),
    depth("input-depth", "Input to reshape", first),
    _elements,
    *input_per_tensor("Reshape"),
    input_zero_point(),
    depth("output-depth", "Output of reshape", output),
    OUTPUT_INFO,
)
DEPTH_TO_SPACE: tuple[Step[DepthToSpace], ...] = (
    BATCH,
    depth("input-depth", "Input to depth to space", first),
    data_type("input-type", "Input to depth to space", first),
    input_layout("Input must be NHWC or NHWCB"),
    _uneven_channels,
    *input_per_tensor("Depth to Space"),
    input_zero_point(),
    OUTPUT_INFO,
    _other_block,
)
SPACE_TO_DEPTH: tuple[Step[SpaceToDepth], ...] = (
    depth("input-depth", "Input to space to depth", first),
    data_type("input-type", "Input to space to depth", first),
    _small_block,
    _uneven_plane,
    *input_per_tensor("Space to Depth", Level.ESTIMATE_ONLY),
    input_zero_point(),
    depth("output-depth", "Output of space to depth", output),
    FULL_OUTPUT_INFO,
    _two_passes,
    _never,
)
RESIZE: tuple[Step[Resize], ...] = (
    BATCH,
    depth("input-depth", "Input to resize", first),
    data_type("input-type", "Input to resize", first),
    input_layout("Input must be NHWC or NHWCB"),
    _resize_rule("height", _upscaled(along_width=False)),
    _resize_rule("width", _upscaled(along_width=True)),
    _parity,
    input_zero_point(),
    output_zero_point("resizeInfo"),
    OUTPUT_INFO,
)
STANDALONE_PADDING: tuple[Step[StandalonePadding], ...] = (
    BATCH,
    depth("input-depth", "Input to standalone padding", first),
    data_type("input-type", "Input to standalone padding", first),
    input_layout("Input to standalone padding must be NHWC OR NHWCB"),
    input_zero_point(),
    _no_elements,
    OUTPUT_INFO,
    _sides,
)
