"""What the engines do in a pass: operations, cycles, patches.

Ref: Ethos-N driver stack 23.02, `MceEstimationUtils.cpp` (`GetMceStats`) and
`EstimationUtils.cpp` (`GetPleStats`).
"""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.targets.ethos_n.commands import McePle, MceRecord
from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation, PleOperation
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.estimate.statistics import MceWork, PleWork
from mizzen.targets.ethos_n.estimate.traffic import Kernel, up
from mizzen.targets.ethos_n.tensors import Shape

HALF_PATCH = (4, 2)
"""Height and width of what the multipliers make at once of an output."""
WINOGRAD_KERNEL = 3
"""The extent of the kernels that one along height or width is taken apart into."""
WINOGRAD_BLOCKS = {(False, False): (2, 2), (True, False): (4, 2), (False, True): (2, 4)}
"""Height and width of a block of outputs, by whether the kernel has one column, one row."""
WINOGRAD_PRODUCTS = 16
"""Products for one block of outputs."""


def uninterleaved_channels(channels: int, mce: MceRecord, capabilities: Capabilities) -> int:
    """Return the channels of an input before it was interleaved for a stride."""
    parts = mce.stride_x * mce.stride_y
    if parts == 1:
        return channels
    srams = capabilities.srams
    return channels // (parts * srams) * srams + channels % srams


def mce_work(command: McePle, kernel: Kernel, capabilities: Capabilities) -> MceWork:
    """Return the operations of a pass, and the cycles of the compute engine for them."""
    mce = command.mce
    channels = uninterleaved_channels(command.input.shape[3], mce, capabilities)
    _, height, width, outputs = mce.output_shape
    match mce.operation:
        case MceOperation.CONVOLUTION:
            pairs = channels * outputs
        case MceOperation.DEPTHWISE_CONVOLUTION:
            pairs = channels
        case MceOperation.FULLY_CONNECTED:
            pairs = channels * command.input.shape[1] * command.input.shape[2] * outputs
    operations = 2 * kernel.shape[0] * kernel.shape[1] * height * width * pairs
    if mce.algorithm is Algorithm.WINOGRAD:
        return MceWork(operations, _winograd_cycles(command, kernel, capabilities))
    is_depthwise = mce.operation is MceOperation.DEPTHWISE_CONVOLUTION
    lanes = 1 if is_depthwise else capabilities.igs
    depth = 1 if is_depthwise else channels
    ogs = capabilities.igs if is_depthwise else capabilities.ogs
    elements = up(height, HALF_PATCH[0]) * up(width, HALF_PATCH[1])
    products = kernel.shape[0] * kernel.shape[1] * elements * up(depth, lanes) * up(outputs, ogs)
    return MceWork(operations, products // (lanes * capabilities.mac_units_per_og * ogs))


def _winograd_cycles(command: McePle, kernel: Kernel, capabilities: Capabilities) -> int:
    kernel_height, kernel_width = kernel.shape[:2]
    _, height, width, outputs = command.mce.output_shape
    rows, columns = WINOGRAD_BLOCKS[kernel_width == 1, kernel_height == 1]
    blocks = -(-height // rows) * -(-width // columns)
    parts = -(-kernel_height // WINOGRAD_KERNEL) * -(-kernel_width // WINOGRAD_KERNEL)
    depth = up(command.input.shape[3], capabilities.igs)
    products = depth * blocks * WINOGRAD_PRODUCTS * parts
    each = products // (capabilities.igs * capabilities.mac_units_per_og)
    return each * -(-outputs // capabilities.ogs)


def ple_work(
    operation: PleOperation, shapes: Iterable[Shape], capabilities: Capabilities
) -> PleWork:
    """Return the patches of the largest of what a kernel takes."""
    _, patch_height, patch_width, _ = capabilities.patch_shape
    lanes = capabilities.engines * capabilities.ple_lanes
    counts = [
        (-(-height // patch_height), -(-width // patch_width), -(-channels // lanes))
        for _, height, width, channels in shapes
    ]
    rows, columns, depth = (max(axis) for axis in zip(*counts, strict=True))
    return PleWork(rows * columns * depth, operation)
