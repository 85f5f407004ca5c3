"""In which layout and memory each tensor lies, and what operations move because of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    Blockwise,
    Bytes,
    Copy,
    Map,
    Pooling,
    Role,
    Sequence,
    maps_read,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.schedule.cost import Constants, Stored, Traffic
from mizzen.targets.ethos_u.generator.schedule.facts import Facts
from mizzen.targets.ethos_u.generator.shared_buffer import may_store_bricks
from mizzen.targets.ethos_u.judge.timing.machine import Bus, Machine
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode
from mizzen.targets.ethos_u.machine.program import RegionIndex


@dataclass(frozen=True, slots=True)
class Storage:
    """Layouts and regions of all tensors of a sequence."""

    sequence: Sequence
    machine: Machine
    layouts: tuple[Layout, ...]
    regions: tuple[RegionIndex, ...]

    def with_layout(self, tensor: int, layout: Layout) -> Storage:
        """Return the same with another layout of one tensor."""
        layouts = list(self.layouts)
        layouts[tensor] = layout
        return replace(self, layouts=tuple(layouts))

    def with_region(self, tensor: int, region: RegionIndex) -> Storage:
        """Return the same with one tensor in another region."""
        regions = list(self.regions)
        regions[tensor] = region
        return replace(self, regions=tuple(regions))

    def bus(self, tensor: int) -> Bus:
        """Return the bus that a tensor is reached through."""
        if self.sequence.tensors[tensor].role is Role.CONSTANT:
            return self.machine.constants
        fast = self.regions[tensor] is RegionIndex.SCRATCH_FAST
        return self.machine.cache if fast else self.machine.arena

    def size_bytes(self, tensor: int) -> int:
        """Return the bytes that a tensor takes."""
        return self.sequence.tensors[tensor].size_bytes(self.layouts[tensor])

    def traffic(self, operation: Blockwise, facts: Facts, constants: Constants | None) -> Traffic:
        """Return what an operation moves."""
        reads = tuple(
            self._stored(map_, shape)
            for map_, shape in zip(maps_read(operation), facts.inputs, strict=True)
        )
        return Traffic(reads, self._stored(operation.ofm, facts.stored_shape), constants)

    def _stored(self, map_: Map, shape: tuple[int, int, int]) -> Stored:
        layout, stride = self.layouts[map_.tensor], 0
        if isinstance(map_.view, Bytes):
            layout, stride = map_.view.layout, map_.view.strides_bytes[1]
        else:
            tensor = self.sequence.tensors[map_.tensor]
            stride = tensor.strides_bytes(layout)[1] * map_.view.steps[1]
        bus = self.bus(map_.tensor)
        return Stored(
            bus=bus,
            shape=shape,
            element_bytes=map_.dtype.itemsize,
            bricks=layout is Layout.NHCWB16,
            stride_x=stride,
        )


def first_storage(sequence: Sequence, machine: Machine) -> Storage:
    """Return a storage with all that is free as bricks, unless bricks would be mostly empty."""
    free = free_tensors(sequence)
    layouts = tuple(
        tensor.layout or (_first_layout(tensor.shape[2]) if free[index] else Layout.NHWC)
        for index, tensor in enumerate(sequence.tensors)
    )
    regions = (RegionIndex.SCRATCH,) * len(sequence.tensors)
    return Storage(sequence=sequence, machine=machine, layouts=layouts, regions=regions)


def _first_layout(depth: int) -> Layout:
    return Layout.NHCWB16 if depth > BRICK // 2 else Layout.NHWC


def free_tensors(sequence: Sequence) -> list[bool]:
    """Tell of each tensor whether it may lie in any layout."""
    free = [tensor.layout is None and tensor.role is Role.SCRATCH for tensor in sequence.tensors]
    for operation in sequence.operations:
        if isinstance(operation, Copy):
            for tensor in (*tensors_read(operation), operation.destination):
                free[tensor] = False
            continue
        for map_ in (*maps_read(operation), operation.ofm):
            if not _takes_bricks(map_, sequence.tensors[map_.tensor].dtype.itemsize):
                free[map_.tensor] = False
        if isinstance(operation, Pooling) and operation.mode is PoolingMode.REDUCE_SUM:
            free[operation.ifm.tensor] = False
        if not may_store_bricks(operation):
            free[operation.ofm.tensor] = False
    return free


def _takes_bricks(map_: Map, element_bytes: int) -> bool:
    """Whether a map can be one of a tensor in bricks: of those it must have every column."""
    if isinstance(map_.view, Bytes) or map_.view.steps[1] != 1:
        return False
    every_column = map_.view.steps[1] == 1 or map_.view.shape[1] == 1
    bricks = map_.view.start[2] % BRICK == 0 and map_.dtype.itemsize == element_bytes
    return bricks and every_column
