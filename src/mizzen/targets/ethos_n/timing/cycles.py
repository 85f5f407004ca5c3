"""The figures of passes, and how long these take: a model of four units beside one another.

They are the DMA's reads, its writes, the compute engine and the programmable layer engine. What
the DMA must move before or after the work adds to the longest of what the four do beside one
another. It is the measure by which Arm's library chooses plans, with the figures of stream 3.1: the
kernels of that stream handle one block at a time.

Ref: Ethos-N driver stack 25.03, `EstimationUtils.cpp` (`CalculateMetric`, `GetPleStats`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mizzen.targets.ethos_n.commands_values import (
    Convert,
    Location,
    MceOperation,
    McePle,
    PleOnly,
    PleOperation,
)
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.tensors import Shape
from mizzen.targets.ethos_n.timing.statistics import (
    WITHOUT_WEIGHTS,
    Kernel,
    Pass,
    PleWork,
    Statistics,
    Traffic,
    conversion_traffic,
    input_traffic,
    mce_work,
    output_traffic,
    ple_work,
    require_possible,
    stripe_counts,
    tensors_of,
    up,
    weight_traffic,
)

Estimated = tuple[tuple[Pass, Statistics], ...]
"""The passes of a network with their figures."""


def estimate(passes: Iterable[Pass], capabilities: Capabilities) -> Estimated:
    """Return the performance data of a compiled network; E983 for passes that cannot be."""
    return tuple((pass_, statistics_of(pass_, capabilities)) for pass_ in passes)


def statistics_of(pass_: Pass, capabilities: Capabilities) -> Statistics:
    """Return the figures of a pass; E983 for one that cannot be."""
    require_possible(pass_)
    match pass_.command:
        case McePle():
            return _mce_ple(pass_, pass_.command, capabilities)
        case PleOnly() as command:
            *inputs, _ = tensors_of(command)
            read = [input_traffic(record, WITHOUT_WEIGHTS, 1, capabilities) for record in inputs]
            shapes = [record.shape for record in inputs]
            return Statistics(
                input=sum(read, Traffic()),
                output=output_traffic(command.output),
                ple=ple_work(command.ple.operation, shapes, capabilities),
            )
        case Convert(source, target):
            in_dram = source.location is Location.DRAM
            return Statistics(
                input=conversion_traffic(source, in_dram),
                output=conversion_traffic(target, in_dram),
            )


def kernel_of(pass_: Pass, command: McePle) -> Kernel:
    """Return the weights of a pass as the network has them."""
    shape = pass_.weights_shape or command.weights.shape
    return Kernel(shape, command.mce.operation is MceOperation.DEPTHWISE_CONVOLUTION)


def _mce_ple(pass_: Pass, command: McePle, capabilities: Capabilities) -> Statistics:
    kernel = kernel_of(pass_, command)
    depth_stripes = -(-command.output.shape[3] // command.output.stripe_shape[3])
    return Statistics(
        input=input_traffic(command.input, kernel, depth_stripes, capabilities),
        output=output_traffic(command.output),
        weights=weight_traffic(
            command.weights, kernel, pass_.weight_stripe_bytes, command.input, capabilities
        ),
        mce=mce_work(command, kernel, capabilities),
        ple=ple_work(command.ple.operation, [command.mce.output_shape], capabilities),
    )


DMA_BYTES_PER_CYCLE = 16
STRIPE_CYCLES = 100
"""What starting a stripe costs each unit."""
SHORTEST_STRIPE_CYCLES = 2500
"""What the control unit needs for a stripe, however little is in it."""
ADDITION_STRIPE_CYCLES = 1500
BLOCK_CYCLES = 10 + 100
"""What a block costs a kernel: for itself, and for the start of a run of blocks, which is one."""
PATCH_CYCLES = {
    PleOperation.ADDITION: 15,
    PleOperation.ADDITION_RESCALE: 35,
    PleOperation.AVGPOOL_3X3_1_1_UDMA: 97,
    PleOperation.FAULT: 0,
    PleOperation.INTERLEAVE_2X2_2_2: 13,
    PleOperation.MAXPOOL_2X2_2_2: 13,
    PleOperation.MAXPOOL_3X3_2_2_EVEN: 37,
    PleOperation.MAXPOOL_3X3_2_2_ODD: 37,
    PleOperation.MEAN_XY_7X7: 37,
    PleOperation.MEAN_XY_8X8: 37,
    PleOperation.PASSTHROUGH: 6,
    PleOperation.SIGMOID: 41,
    PleOperation.TRANSPOSE_XY: 14,
    PleOperation.LEAKY_RELU: 37,
    PleOperation.DOWNSAMPLE_2X2: 10,
}
ADDITIONS = (PleOperation.ADDITION, PleOperation.ADDITION_RESCALE)


def cycles(passes: Iterable[Pass], capabilities: Capabilities) -> int:
    """Return the cycles that a compiled network takes, its passes one after the other; rounded up.

    E983 for passes that cannot be.
    """
    return math.ceil(
        sum(pass_cycles(*estimated, capabilities) for estimated in estimate(passes, capabilities))
    )


@dataclass(frozen=True, slots=True)
class PassCycles:
    """Cycles of a pass.

    apart           of the DMA's, when nothing else is at work
    read, written   of the DMA's, beside the engines
    mce, ple        of the compute engine and the programmable layer engine
    """

    apart: float
    read: float
    written: float
    mce: float
    ple: float

    @property
    def total(self) -> float:
        """What the pass takes: the units beside one another, and what is apart."""
        return self.apart + max(self.read, self.written, self.mce, self.ple)


def pass_units(pass_: Pass, figures: Statistics, capabilities: Capabilities) -> PassCycles:
    """Return the cycles of each unit for a pass."""
    read_beside, read_apart = _dma_cycles(figures.input)
    weights_beside, weights_apart = _dma_cycles(figures.weights.traffic)
    written_beside, written_apart = _dma_cycles(figures.output)
    return PassCycles(
        apart=read_apart + weights_apart + written_apart,
        read=read_beside + weights_beside,
        written=written_beside,
        mce=_mce_cycles(pass_, figures),
        ple=_ple_cycles(pass_, capabilities),
    )


def pass_cycles(pass_: Pass, figures: Statistics, capabilities: Capabilities) -> float:
    """Return the cycles that a pass takes."""
    return pass_units(pass_, figures, capabilities).total


def _unit_cycles(work: float, stripes: int, stripe_cycles: int = STRIPE_CYCLES) -> float:
    return max(work + stripes * stripe_cycles, stripes * SHORTEST_STRIPE_CYCLES)


def _dma_cycles(traffic: Traffic) -> tuple[float, float]:
    """Return the cycles of what is moved beside the work, and of what is not."""
    total = traffic.dram_parallel_bytes + traffic.dram_non_parallel_bytes
    stripes = traffic.central_stripes * (traffic.reloads + 1)
    taken = _unit_cycles(total / DMA_BYTES_PER_CYCLE, stripes)
    beside = taken * traffic.dram_parallel_bytes / total if total else 0.0
    return beside, taken - beside


def _mce_cycles(pass_: Pass, figures: Statistics) -> float:
    if not isinstance(pass_.command, McePle):
        return 0.0
    command = pass_.command
    stripes = math.prod(stripe_counts(command.mce.output_shape, command.mce.output_stripe_shape))
    if command.mce.operation is not MceOperation.DEPTHWISE_CONVOLUTION:
        stripes *= -(-command.input.shape[3] // command.input.stripe_shape[3])
    return _unit_cycles(figures.mce.cycles, stripes)


def _ple_cycles(pass_: Pass, capabilities: Capabilities) -> float:
    match pass_.command:
        case McePle() as command:
            work = _in_blocks(command, capabilities)
        case PleOnly() as command:
            *inputs, _ = tensors_of(command)
            shapes = [record.shape for record in inputs]
            patches = ple_work(command.ple.operation, shapes, capabilities)
            work = _patch_cycles(patches)
        case Convert():
            return 0.0
    stripes = math.prod(stripe_counts(command.output.shape, command.output.stripe_shape))
    is_addition = command.ple.operation in ADDITIONS
    return _unit_cycles(work, stripes, ADDITION_STRIPE_CYCLES if is_addition else STRIPE_CYCLES)


def _patch_cycles(work: PleWork) -> int:
    return work.patches * PATCH_CYCLES[work.operation]


def _in_blocks(command: McePle, capabilities: Capabilities) -> int:
    """Return the cycles of a kernel after the compute engine, which takes whole blocks."""
    block = command.block_config
    n, height, width, channels = command.mce.output_shape
    whole: Shape = n, up(height, block.height), up(width, block.width), channels
    work = ple_work(command.ple.operation, [whole], capabilities)
    _, height, width, _ = command.output.shape
    depth = -(-channels // (capabilities.engines * capabilities.ple_lanes))
    blocks = -(-height // block.height) * -(-width // block.width) * depth
    return _patch_cycles(work) + blocks * BLOCK_CYCLES
