"""Rules of what moves the elements of feature maps.

First reshaping, blocks, resizing and padding; then transposition; then concatenation and splitting.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp` and `Utils.cpp`
(`EstimateWeightSizeBytes`); `StandalonePadding` is of 25.03 only.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.config import Capabilities, Profile
from mizzen.targets.ethos_n.legal.tensor_rules import (
    BATCH,
    FULL_OUTPUT_INFO,
    ONE_SCALE,
    OUTPUT_INFO,
    REGISTER_LARGEST,
    V23_02,
    Case,
    Measure,
    OperationRule,
    Step,
    batch,
    data_type,
    deep,
    depth,
    depth_rule,
    each_input,
    first,
    identity_scale,
    input_layout,
    input_per_tensor,
    input_zero_point,
    is_too_deep,
    output,
    output_per_tensor,
    output_zero_point,
    padding_text,
    rule,
    shape_text,
    sides,
)
from mizzen.targets.ethos_n.network import (
    Concatenation,
    DepthToSpace,
    Reshape,
    Resize,
    SpaceToDepth,
    Split,
    StandalonePadding,
    Transpose,
)
from mizzen.targets.ethos_n.tensors import Shape, TensorInfo
from mizzen.targets.rules import Breach, Level

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


IDENTITY: Shape = (0, 1, 2, 3)
CONVERTED: dict[Profile, tuple[Shape, ...]] = {
    Profile.V23_02: ((0, 2, 3, 1),),
    Profile.V25_03: ((0, 2, 3, 1), (0, 3, 1, 2)),
}
"""Permutations that a change of format makes while it is copied: the input alone is in the SRAM."""
LOADED_AS_NCHW: tuple[Shape, ...] = ((0, 1, 3, 2), (0, 3, 2, 1))
"""Permutations of which the input is read as if it were NCHW."""

WEIGHT_HEADER_BYTES = 41 + 14
"""Worst case of a channel's weight stream besides the weights: parameters with a full palette, and
the header with bias and scale."""


def depthwise_weight_bytes(channels: int, capabilities: Capabilities) -> int:
    """Return the most bytes that the weights of a 1x1 depthwise convolution are encoded in.

    Each channel has a weight and a mask bit for each input generator; 9 bits hold 8 at worst.
    """
    banks = capabilities.srams
    weights = 1 + banks // 8
    each = (9 * weights + 7) // 8 + WEIGHT_HEADER_BYTES
    stream = each * -(-channels // banks)
    return -(-stream // 16) * 16 * banks


def brick_bytes(shape: Shape, capabilities: Capabilities) -> int:
    """Return the bytes of 8-bit elements in whole brick groups."""
    batch, *extents = shape
    total = batch
    for extent, step in zip(extents, capabilities.brick_group_shape[1:], strict=True):
        total *= -(-extent // step) * step
    return total


def transpose_bytes(
    shape: Shape, permutation: Shape, capabilities: Capabilities, profile: Profile
) -> int:
    """Return the SRAM that a transposition needs; it is not split in stripes."""
    if permutation == IDENTITY:
        return 0
    if permutation in CONVERTED[profile]:
        return brick_bytes(shape, capabilities)
    if permutation in LOADED_AS_NCHW:
        _, height, width, channels = shape
        shape = (1, width, channels, height)
    # An identity convolution comes before it: its input, its output, its weights, its kernels.
    planes = 2 * brick_bytes(shape, capabilities)
    kernels = capabilities.max_ple_bytes * capabilities.srams
    return planes + depthwise_weight_bytes(shape[3], capabilities) + kernels


@rule("batch-axis").must_have(
    "the axis of the batch as its first",
    "leave the first axis where it is",
    "Transpose of batch(0) axis is not allowed",
)
def _moved_batch(case: Case[Transpose]) -> str | None:
    found = case.operation.permutation[0]
    return None if found == 0 else f"axis {found}"


@rule("axes").must_have(
    "axes from 0 to 3",
    "give the feature map four dimensions",
    "Transpose of dimensions > 3 are not allowed",
)
def _axes(case: Case[Transpose]) -> str | None:
    permutation = case.operation.permutation
    return None if all(0 <= axis <= 3 for axis in permutation) else str(permutation)


@rule("unique").must_have(
    "each axis once", "export the network again", "Transpose axes must be unique"
)
def _repeated(case: Case[Transpose]) -> str | None:
    permutation = case.operation.permutation
    return None if len(set(permutation)) == 4 else str(permutation)


def _fits(profile: Profile) -> Measure[Transpose]:
    def measure(case: Case[Transpose]) -> str | None:
        there = case.capabilities.sram_bytes
        shape, permutation = case.input.shape, case.operation.permutation
        needed = transpose_bytes(shape, permutation, case.capabilities, profile)
        return None if needed <= there else f"{needed} of {there} bytes"

    return measure


def _size_rule(profile: Profile, permutations: str) -> OperationRule[Transpose]:
    return rule("sram", profiles=(profile,)).must_have(
        f"an input that fits in the SRAM for {permutations}, together with as large an output, "
        "weights of an identity convolution and 4096 bytes for each bank for all others",
        "split the input, or take a variant with more SRAM",
        "The tensors are too large",
    )(_fits(profile))


@rule("estimate", Level.ESTIMATE_ONLY, V23_02).must_have(
    "another form", "keep the order of axes through the network, and transpose outside of it"
)
def _any_permutation(case: Case[Transpose]) -> str | None:
    return f"permutation {case.operation.permutation}"


TRANSPOSE: tuple[Step[Transpose], ...] = (
    depth("input-depth", "Input to transpose", first),
    data_type("input-type", "Input to transpose", first),
    input_layout("Input must be NHWC or NHWCB"),
    _moved_batch,
    _axes,
    _repeated,
    *input_per_tensor("Transpose", Level.ESTIMATE_ONLY),
    input_zero_point(),
    depth("output-depth", "Output of transpose", output),
    OUTPUT_INFO,
    _size_rule(Profile.V23_02, "(0, 2, 3, 1)"),
    _size_rule(Profile.V25_03, "(0, 2, 3, 1) and (0, 3, 1, 2)"),
    _any_permutation,
)


Along = Concatenation | Split

BATCH_AXIS = 0
CHANNEL_AXIS = 3
CHANNEL_STEP = 16
"""Channels of a brick: what is joined in the DRAM along them starts at a brick."""


@rule("inputs").must_have("at least one input", "leave it out", "Must have at least one input")
def _no_input(case: Case[Concatenation]) -> str | None:
    return None if case.inputs else "none"


def _axis(case: Case[Along]) -> str | None:
    axis = case.operation.axis
    return None if 0 <= axis <= CHANNEL_AXIS else f"axis {axis}"


def _batch_axis(case: Case[Along]) -> str | None:
    return None if case.operation.axis != BATCH_AXIS else "axis 0"


@rule("inputs-shape").must_have(
    "inputs with the same extents along all axes but its own",
    "export the network again",
    "Input tensors must have the same size along all dimensions except the concatenation dimension",
)
def _other_extents(case: Case[Concatenation]) -> str | None:
    axis, wanted = case.operation.axis, case.input.shape
    for info in case.inputs:
        pairs = zip(info.shape, wanted, strict=True)
        if any(have != want for at, (have, want) in enumerate(pairs) if at != axis):
            return f"{shape_text(case.input)} and {shape_text(info)}"
    return None


@rule("inputs-axis").must_have(
    "inputs without an axis of quantisation",
    ONE_SCALE,
    "Quantization Dim should not be used on any Inputs of Concat",
)
def _input_axes(case: Case[Concatenation]) -> str | None:
    axes = (info.quantization.axis for info in case.inputs)
    return next((f"scales along axis {axis}" for axis in axes if axis is not None), None)


def _uneven(axis: int, channels: tuple[int, ...]) -> str | None:
    if axis != CHANNEL_AXIS or not any(count % CHANNEL_STEP for count in channels):
        return None
    return ", ".join(map(str, channels))


@rule("channels", Level.ESTIMATE_ONLY, V23_02).must_have(
    "inputs with a multiple of 16 channels, where it is along the channels",
    "let what comes before give a multiple of 16 channels",
    "Concatenation along the channels dimension (axis 3) requires input tensors with a "
    "multiple of 16 channels",
)
def _uneven_inputs(case: Case[Concatenation]) -> str | None:
    return _uneven(case.operation.axis, tuple(info.channels for info in case.inputs))


@rule("channels", Level.ESTIMATE_ONLY, V23_02).must_have(
    "sizes that are multiples of 16, where it is along the channels",
    "let what comes before give a multiple of 16 channels for each part",
    "Split along the channels dimension (axis 3) requires all output sizes (specified in "
    "splitInfo.m_Sizes) to be multiples of 16",
)
def _uneven_outputs(case: Case[Split]) -> str | None:
    return _uneven(case.operation.axis, case.operation.sizes)


def _axis_rule(message: str) -> OperationRule[Along]:
    return rule("axis").must_have(
        "an axis from 0 to 3",
        "give the feature maps four dimensions, and count the axis from 0",
        message,
    )(_axis)


def _batch_axis_rule(what: str, level: Level) -> OperationRule[Along]:
    return rule("batch-axis", level).must_have(
        "another axis than that of the batch",
        "reshape so that the axis is height, width or channels",
        f"{what} cannot be performed along batch axis (axis 0)",
    )(_batch_axis)


CONCATENATION: tuple[Step[Concatenation], ...] = (
    _no_input,
    each_input(
        BATCH,
        depth("input-depth", "Input tensors", first),
        data_type("input-type", "Input tensors", first),
        input_layout("Input to concatenation must be NHWC or NHWCB"),
    ),
    _axis_rule("Concatenation axis must refer to a valid dimension (0-3)"),
    _other_extents,
    _input_axes,
    *output_per_tensor("Concatenation"),
    each_input(input_zero_point("at least one input info"), output_zero_point("concatInfo")),
    each_input(identity_scale("Output scales")),
    depth("output-depth", "Output of concatenation", output),
    OUTPUT_INFO,
    _batch_axis_rule("Concatenation", Level.ESTIMATE_ONLY),
    _uneven_inputs,
)


@rule("outputs").must_have("at least one output", "leave it out", "Must have at least 1 output")
def _no_output(case: Case[Split]) -> str | None:
    return None if case.operation.sizes else "none"


@rule("sizes").must_have(
    "sizes that sum to the input's extent",
    "export the network again",
    "Sizes must sum to the total size of the input tensor along the split axis",
)
def _sum(case: Case[Split]) -> str | None:
    extent, total = case.input.shape[case.operation.axis], sum(case.operation.sizes)
    return None if total == extent else f"{total} where the input has {extent}"


@rule("output-infos").must_have(
    "as many output infos given as outputs, where any are",
    OUTPUT_INFO.help,
    "Provided outputInfos array has incorrect size",
)
def _count(case: Case[Split]) -> str | None:
    if case.expected is None or len(case.expected) == len(case.operation.sizes):
        return None
    return f"{len(case.expected)} for {len(case.operation.sizes)} outputs"


def _wrong_part(case: Case[Split]) -> int | None:
    """Find the first output that is not as the given info says."""
    for index, (given, made) in enumerate(zip(case.expected or (), case.outputs, strict=False)):
        if given.elements and given != made:
            return index
    return None


def _part_depth(case: Case[Split]) -> Breach | None:
    # The library looks at depth and info of one output after the other.
    sram_bytes = case.capabilities.sram_bytes
    wrong = _wrong_part(case)
    parts = case.outputs if wrong is None else case.outputs[: wrong + 1]
    breaches = (deep(info, sram_bytes) for info in parts if is_too_deep(info, sram_bytes))
    return next(breaches, None)


@rule(OUTPUT_INFO.id, OUTPUT_INFO.level, fills=True).must_have(
    OUTPUT_INFO.limit, OUTPUT_INFO.help, "Provided outputInfo at index %d is incorrect"
)
def _part_info(case: Case[Split]) -> Breach | None:
    index = _wrong_part(case)
    if index is None:
        return None
    return Breach(f"{shape_text(case.outputs[index])} as output {index}", (index,))


SPLIT: tuple[Step[Split], ...] = (
    BATCH,
    depth("input-depth", "Input tensor", first),
    _no_output,
    data_type("input-type", "Input tensor", first),
    input_layout("Input tensor must be NHWC or NHWCB"),
    _axis_rule("Axis must refer to a valid dimension (0-3)"),
    _sum,
    *input_per_tensor("Split"),
    input_zero_point(),
    _count,
    depth_rule("output-depth", "Output of split", _part_depth),
    _part_info,
    _batch_axis_rule("Split", Level.UNSUPPORTED),
    _uneven_outputs,
)
