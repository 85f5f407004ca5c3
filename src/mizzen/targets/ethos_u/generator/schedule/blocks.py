"""The blocks and traversals that an operation may have.

Ref: Vela 5.2.0, whose streams have blocks of these depths only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.generator.operations import Blocking, Blockwise, Shape
from mizzen.targets.ethos_u.generator.schedule.facts import (
    ALONE,
    EVERY_CHANNEL,
    HAS_WEIGHTS,
    SUBKERNEL,
    Facts,
    Kind,
)
from mizzen.targets.ethos_u.generator.shared_buffer import (
    LARGEST_BLOCK,
    AnyDemand,
    DemandU85,
    demand_on,
    fitting,
    sides_of,
)
from mizzen.targets.ethos_u.machine.commands_values import UpscaleMode
from mizzen.targets.ethos_u.machine.config import Accelerator

Blocks = npt.NDArray[np.int64]
"""A row for each block: height, width, depth."""
N = TypeVar("N", int, Blocks)

FEW_CHANNELS = 8
"""Convolutions of so many input channels or fewer can only have their weights kernel first."""
PART_KERNEL_SLAB = 16
"""Input channels of one job at most, where they come kernel part by kernel part."""
DEPTH_STEP = 16
"""Depths of blocks that are less than the output's are multiples of it."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Legal blocks of an operation for one traversal and one format of its weights."""

    part_kernel: bool
    blocks: Blocks
    fast: bool = False

    def blocking(self, index: int) -> Blocking:
        """Return one of them."""
        height, width, depth = (int(side) for side in self.blocks[index])
        return Blocking((height, width, depth), self.part_kernel, self.fast)


def possible(
    facts: Facts, demand: AnyDemand, part_kernel: bool, accelerator: Accelerator
) -> Blocks:
    """Return the legal blocks of an operation that its weights are in order for. E286 for none."""
    every = legal(demand, facts.shape, part_kernel, accelerator)
    if facts.block_depth is not None:
        every = every[every[:, 2] == facts.block_depth]
    if not len(every):
        raise fail(
            "E286",
            f"an operation must have a block that the memories of {accelerator.name} hold, and a "
            f"{facts.kind.value} of {' x '.join(map(str, facts.shape))} has none",
        )
    return every


def traversals(facts: Facts, demand: AnyDemand) -> tuple[bool, ...]:
    """Return whether weights may come kernel part by kernel part, depth first, or both."""
    if isinstance(demand, DemandU85):
        return (demand.part_kernel,)
    if facts.kind is not Kind.CONVOLUTION or facts.block_depth is not None:
        return (False,)
    return (True,) if facts.channels <= FEW_CHANNELS else (False, True)


@lru_cache(maxsize=4096)
def legal(demand: AnyDemand, shape: Shape, part_kernel: bool, accelerator: Accelerator) -> Blocks:
    """Return all legal blocks of an output of a shape, which must not be written.

    Of U85's, which may be large, those are left out that are longer along an axis than as many
    blocks need to be.
    """
    steps, largest = sides_of(demand, accelerator)
    if isinstance(demand, DemandU85):
        sides = [_shortest(*side) for side in zip(shape, steps, largest, strict=True)]
        deep = _shortest(shape[2], math.lcm(steps[2], DEPTH_STEP), largest[2])
        sides[2] = np.union1d(deep, sides[2][-1:])
    else:
        sides = [
            np.arange(step, min(most, rounded(size, step)) + 1, step)
            for step, most, size in zip(steps, largest, shape, strict=True)
        ]
        sides[2] = np.array(depths(shape[2], steps[2]))
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 3).astype(np.int64)
    return grid[fitting(demand, grid, part_kernel, accelerator)]


def _shortest(size: int, step: int, most: int) -> Blocks:
    """Return for each number of blocks along an axis the least side of them."""
    every = {rounded(up(size, count), step) for count in range(1, up(size, step) + 1)}
    return np.array(sorted(side for side in every if side <= most))


def depths(channels: int, step: int) -> list[int]:
    """Return the depths that a block may have for an output of so many channels."""
    most = min(rounded(channels, step), LARGEST_BLOCK[2])
    return [*range(DEPTH_STEP, most, DEPTH_STEP), most]


def usual(operation: Blockwise, facts: Facts, accelerator: Accelerator) -> Blocking:
    """Return a block as Vela would choose it: the one that reads least of inputs and weights."""
    demand = demand_on(operation, accelerator)
    traversed = traversals(facts, demand)
    part_kernel = traversed == (True,) or (len(traversed) > 1 and fills_better(facts))
    blocks = possible(facts, demand, part_kernel, accelerator)
    best = int(np.argmin(_read_per_output(facts, blocks, part_kernel)))
    return Candidates(part_kernel, blocks).blocking(best)


def _read_per_output(facts: Facts, blocks: Blocks, part_kernel: bool) -> npt.NDArray[np.float64]:
    if facts.kind in ALONE:
        return -np.prod(blocks, axis=1).astype(np.float64)
    height, width, depth = facts.shape
    tall, wide, deep = blocks.T
    covered = input_blocks(facts, blocks, part_kernel)
    channels = facts.inputs[0][2]
    planes = (height / tall) * (width / wide)
    read = covered[:, 0] * covered[:, 1] * channels * len(facts.subkernels) * planes
    if facts.kind in EVERY_CHANNEL:
        read = read * -(-depth // deep)
    if facts.kind in HAS_WEIGHTS:
        outputs = depth if facts.kind is Kind.CONVOLUTION else 1
        weights = sum(facts.subkernels) * channels * outputs
        read = read + weights * (-(-height // tall)) * (-(-width // wide))
    return read / math.prod(facts.shape)


def fills_better(facts: Facts) -> bool:
    """Whether kernel first leaves less of the array idle than depth first."""
    at_once, deep = (4, 32) if facts.input_bits == 8 else (2, 16)
    elements, channels = sum(facts.subkernels), facts.channels
    part = channels / rounded(channels, 8) * elements / rounded(elements, at_once)
    return part >= channels / rounded(channels, deep)


def input_blocks(facts: Facts, blocks: Blocks, part_kernel: bool) -> Blocks:
    """Return height, width and depth of the input that a job of each block needs."""
    if facts.kind in ALONE:
        return blocks
    unit = facts.microblock
    factor = 1 if facts.upscale is UpscaleMode.NONE else 2
    needs = blocks.copy()
    for axis in range(2):
        span = min(facts.kernel[axis], SUBKERNEL) + (1 if factor > 1 else 0)
        needed = (blocks[:, axis] - 1) * facts.strides[axis] + span
        needs[:, axis] = rounded(-(-needed // factor), unit[axis])
    if facts.kind in EVERY_CHANNEL:
        needs[:, 2] = rounded(min(slab(facts, part_kernel), facts.channels), 8)
    return needs


def slab(facts: Facts, part_kernel: bool) -> int:
    """Return how many input channels a job reads at most."""
    return PART_KERNEL_SLAB if part_kernel else facts.slab


def rounded(value: N, by: int) -> N:
    """Return numbers rounded up to a multiple."""
    return by * up(value, by)


def up(value: N, by: int) -> N:
    """Return quotients rounded up."""
    return -(-value // by)
