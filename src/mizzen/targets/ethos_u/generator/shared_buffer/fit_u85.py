"""Which microblock an operation of U85 has, and whether a block fits into its memories.

Inputs and accumulators have a memory each, results and what is broadcast another. A convolution
has two blocks of its input and of its accumulators there; other windows have one and the next rows
of the input.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import PERMUTATIONS, Shape
from mizzen.targets.ethos_u.generator.shared_buffer.arrays_u85 import (
    BRICK_BYTES,
    Array,
    Unit,
    Work,
)
from mizzen.targets.ethos_u.generator.shared_buffer.demand_u85 import BRICK_CHANNELS, DemandU85
from mizzen.targets.ethos_u.generator.shared_buffer.fit import Ints, rounded
from mizzen.targets.ethos_u.machine.commands_values import ReverseU85, TransposeU85

LARGEST_BLOCK_U85: Shape = (128, 128, 1024)
CHAIN_PARTS = 6
"""Parts of the memory for chains, one of which an operand that is broadcast has."""


@lru_cache(maxsize=1 << 14)
def unit_of(demand: DemandU85, array: Array) -> Unit:
    """Return the microblock that leaves least of the array idle; the first of equal ones."""
    allowed = [unit for unit in array.units if _is_allowed(demand, unit)]
    return min(allowed, key=lambda unit: _computed(demand.shape, unit.shape))


def _is_allowed(demand: DemandU85, unit: Unit) -> bool:
    if demand.ifm_bytes == 1:
        return demand.work in unit.bytes_
    flat = demand.work is Work.PRODUCT or (
        demand.work is Work.CONVOLUTION and demand.is_point and not demand.part_kernel
    )
    return demand.work in unit.words or (flat and unit.flat_words)


def _computed(shape: Shape, unit: Shape) -> int:
    return math.prod(rounded(size, side) for size, side in zip(shape, unit, strict=True))


def steps_u85(demand: DemandU85, unit: Unit) -> Shape:
    """Return what height, width and depth of a block are multiples of.

    Of what is stored in bricks, the axis that becomes depth must have whole ones.
    """
    steps = list(unit.shape)
    match demand.work:
        case Work.RESIZE:
            steps[0], steps[2] = 1, BRICK_CHANNELS
        case Work.ELEMENTWISE:
            steps[2] = BRICK_CHANNELS
        case _:
            pass
    if demand.bricks and demand.order.transpose is not TransposeU85.HWC:
        axis = PERMUTATIONS[demand.order.transpose][2]
        steps[axis] = math.lcm(steps[axis], BRICK_CHANNELS)
    return steps[0], steps[1], steps[2]


def fits_u85(
    demand: DemandU85, blocks: Ints, part_kernel: bool, array: Array
) -> npt.NDArray[np.bool_]:
    """Tell of each block, int64 [n, 3] (height, width, depth), whether it is legal: bool [n].

    Blocks are of the result as it is computed.
    """
    unit = unit_of(demand, array)
    sides, most = np.array(steps_u85(demand, unit)), np.array(LARGEST_BLOCK_U85)
    legal = ((blocks % sides == 0) & (blocks > 0) & (blocks <= most)).all(axis=1)
    if demand.order.reverse is ReverseU85.C:
        legal &= blocks[:, 2] == BRICK_CHANNELS
    match demand.work:
        case Work.ELEMENTWISE:
            return legal & _fits_elementwise(demand, blocks, unit, array)
        case Work.RESIZE:
            return legal & _fits_resize(demand, blocks, unit, array)
        case Work.CONVOLUTION | Work.PRODUCT:
            return legal & _fits_jobs(demand, blocks, part_kernel, unit, array)
        case _:
            return legal & _fits_rows(demand, blocks, unit, array)


def _fits_jobs(
    demand: DemandU85, blocks: Ints, part_kernel: bool, unit: Unit, array: Array
) -> npt.NDArray[np.bool_]:
    """Whether two blocks have room; where not even the least two have, whether one has."""
    slab = demand.slab(part_kernel, unit, array)
    assert slab is not None
    granule, depth = unit.granule(slab * demand.ifm_bytes), min(slab, demand.ifm[2])

    def holds(number: int, held: Ints) -> npt.NDArray[np.bool_]:
        inputs = _input_bytes(demand, held[:, 0], held[:, 1], depth, granule)
        sums = _accumulator_bytes(demand, held)
        return (number * inputs <= array.ifm_bytes) & (number * sums <= array.acc_bytes)

    least = np.array([steps_u85(demand, unit)], np.int64)
    return holds(2 if holds(2, least).all() else 1, blocks)


def _fits_rows(demand: DemandU85, blocks: Ints, unit: Unit, array: Array) -> npt.NDArray[np.bool_]:
    height, width, depth = blocks.T
    slab = demand.slab(False, unit, array)
    granules = np.array(
        [
            unit.granule(int(size) * demand.ifm_bytes)
            for size in (depth if slab is None else np.full_like(depth, slab))
        ]
    )
    channels = depth if slab is None else np.full_like(depth, min(slab, demand.ifm[2]))
    tall, wide = _covered(demand, height, width)
    unit_height, unit_width, unit_depth = granules.T
    pixel = _rounded_each(wide, unit_width) * _rounded_each(channels * demand.ifm_bytes, unit_depth)
    inputs = _rounded_each(tall, unit_height) * pixel
    shape = np.array(demand.shape)
    whole = (blocks >= shape).all(axis=1)
    least = np.minimum(inputs, math.prod(demand.ifm) * demand.ifm_bytes)
    needed = np.where(whole, least, inputs + unit_height * pixel)
    return (needed <= array.ifm_bytes) & (_accumulator_bytes(demand, blocks) <= array.acc_bytes)


def _fits_elementwise(
    demand: DemandU85, blocks: Ints, unit: Unit, array: Array
) -> npt.NDArray[np.bool_]:
    """Whether columns of 16 channels have room on their way out, or those that are broadcast."""
    height, width, depth = blocks.T
    columns = array.output_bytes // (demand.ifm_bytes * BRICK_CHANNELS) * BRICK_CHANNELS // depth
    leaves = width <= np.maximum(1, -(-columns // unit.shape[1])) * unit.shape[1]
    operands = [operand for operand in demand.operands if operand[::2] != demand.shape[::2]]
    if not operands or demand.shape[1] == 1:
        return leaves
    most = array.chain_bytes // CHAIN_PARTS // (BRICK_BYTES * demand.ifm_bytes)
    shared = width <= max(unit.shape[1], most // unit.shape[0])
    legal = leaves & shared
    over_depth = [operand for operand in operands if operand[2] != demand.shape[2]]
    if over_depth:
        legal = shared & (
            depth >= (demand.shape[2] if demand.shape[2] <= LARGEST_BLOCK_U85[2] else 0)
        )
    smallest = (blocks[:, :2] <= unit.shape[:2]).all(axis=1)
    for tall, wide, _ in over_depth:
        if wide > 1:
            held = np.minimum(height, tall) * np.minimum(width, wide)
            legal &= (held <= most) | smallest
    return legal


def _fits_resize(
    demand: DemandU85, blocks: Ints, unit: Unit, array: Array
) -> npt.NDArray[np.bool_]:
    """Whether a row of a block can be made of the columns that are held of the input."""
    scale, step = demand.columns
    held = array.chain_bytes // CHAIN_PARTS // (BRICK_BYTES * demand.ifm_bytes)
    most = max(unit.shape[1], -(-((held - 2) * scale + 1) // step))
    height, width, depth = blocks.T
    return (height == 1) & (width <= most) & (depth == BRICK_CHANNELS)


def _input_bytes(demand: DemandU85, height: Ints, width: Ints, depth: int, granule: Shape) -> Ints:
    tall, wide = _covered(demand, height, width)
    pixel = rounded(depth * demand.ifm_bytes, granule[2])
    return rounded(tall, granule[0]) * rounded(wide, granule[1]) * pixel


def _covered(demand: DemandU85, height: Ints, width: Ints) -> tuple[Ints, Ints]:
    """Return the rows and columns of the input that blocks need."""
    extra = 1 if demand.replicates else 0
    tall = (height - 1) * demand.stride_y + demand.kernel_height + extra
    wide = (width - 1) * demand.stride_x + demand.kernel_width + extra
    return -(-tall // demand.upscale), -(-wide // demand.upscale)


def _accumulator_bytes(demand: DemandU85, blocks: Ints) -> Ints:
    area = blocks[:, 0] * blocks[:, 1]
    return area * rounded(blocks[:, 2], BRICK_CHANNELS) * (8 if demand.wide else 4)


def _rounded_each(values: Ints, granules: Ints) -> Ints:
    """Return each value rounded up to a multiple of its granule."""
    return -(-values // granules) * granules
