"""What fits, asked of any Ethos-U: the shared buffer of U55 and U65, or the memories of U85."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import Blockwise, Chain, Shape
from mizzen.targets.ethos_u.generator.shared_buffer.arrays_u85 import ARRAYS, Array, Unit
from mizzen.targets.ethos_u.generator.shared_buffer.cores import CORES, LARGEST_BLOCK, Core
from mizzen.targets.ethos_u.generator.shared_buffer.demand_u85 import DemandU85, demand_u85_of
from mizzen.targets.ethos_u.generator.shared_buffer.fit import Demand, Ints, demand_of, fits
from mizzen.targets.ethos_u.generator.shared_buffer.fit_u85 import (
    LARGEST_BLOCK_U85,
    fits_u85,
    steps_u85,
    unit_of,
)
from mizzen.targets.ethos_u.machine.config import Accelerator

AnyDemand = Demand | DemandU85
DEPTH_FIRST_BYTES = 32
"""Of input channels in one job of U55 and U65."""


def core_of(accelerator: Accelerator) -> Core | Array:
    """Return the row of an accelerator."""
    core = CORES.get(accelerator.name)
    return ARRAYS[accelerator.name] if core is None else core


def demand_on(operation: Blockwise, accelerator: Accelerator) -> AnyDemand:
    """Return the demand of an operation on an accelerator, whatever its block.

    That of a chain is its first link's: the others take blocks as they come, as Vela 5.2 has it.
    """
    first = operation.links[0] if isinstance(operation, Chain) else operation
    is_u85 = accelerator.name in ARRAYS
    return demand_u85_of(first) if is_u85 else demand_of(first)


def microblock_of(operation: Blockwise, accelerator: Accelerator) -> Shape:
    """Return the height, width and depth of the output that is computed at once."""
    return microblock_for(demand_on(operation, accelerator), accelerator)


def microblock_for(demand: AnyDemand, accelerator: Accelerator) -> Shape:
    """Return the same of a demand."""
    core = core_of(accelerator)
    if isinstance(core, Core):
        return core.microblock
    assert isinstance(demand, DemandU85)
    return unit_of(demand, core).shape


def slab_for(demand: AnyDemand, accelerator: Accelerator) -> int:
    """Return the input channels of one job at most, where they come depth first."""
    core = core_of(accelerator)
    if isinstance(core, Core):
        assert isinstance(demand, Demand)
        return DEPTH_FIRST_BYTES // demand.ifm_bytes
    assert isinstance(demand, DemandU85)
    return demand.slab(False, unit_of(demand, core), core) or demand.ifm[2]


def job_depth_for(demand: AnyDemand, part_kernel: bool, accelerator: Accelerator) -> int | None:
    """Return the input channels of one job; None for those of the output's block."""
    core = core_of(accelerator)
    if isinstance(core, Core):
        assert isinstance(demand, Demand)
        return demand.ifm_depth_of_job(part_kernel)
    assert isinstance(demand, DemandU85)
    return demand.slab(part_kernel, unit_of(demand, core), core)


@dataclass(frozen=True, slots=True)
class InputMemory:
    """The memory of U85 that holds inputs: its size, and by what a microblock gives room in it."""

    bytes_: int
    unit: Unit


def input_memory(microblock: Shape, accelerator: Accelerator) -> InputMemory:
    """Return the memory for the inputs of operations of a microblock."""
    array = ARRAYS[accelerator.name]
    unit = next(unit for unit in array.units if unit.shape == microblock)
    return InputMemory(array.ifm_bytes, unit)


def sides_of(demand: AnyDemand, accelerator: Accelerator) -> tuple[Shape, Shape]:
    """Return what each side of a block is a multiple of, and the most that it may be."""
    core = core_of(accelerator)
    if isinstance(core, Core):
        return core.microblock, LARGEST_BLOCK
    assert isinstance(demand, DemandU85)
    return steps_u85(demand, unit_of(demand, core)), LARGEST_BLOCK_U85


def fitting(
    demand: AnyDemand, blocks: Ints, part_kernel: bool, accelerator: Accelerator
) -> npt.NDArray[np.bool_]:
    """Tell of each block, int64 [n, 3] (height, width, depth), whether it is legal: bool [n]."""
    core = core_of(accelerator)
    if isinstance(core, Core):
        assert isinstance(demand, Demand)
        return fits(demand, blocks, part_kernel, core)
    assert isinstance(demand, DemandU85)
    return fits_u85(demand, blocks, part_kernel, core)
