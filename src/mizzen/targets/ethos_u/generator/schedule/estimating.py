"""What an operation costs by itself in its best block, before anything is laid out."""

from __future__ import annotations

from collections.abc import Sequence as Rows

from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    Blockwise,
    Bytes,
    Copy,
    Map,
    Operation,
    Role,
    Shape,
    Tensor,
    convolution_of,
    maps_read,
)
from mizzen.targets.ethos_u.generator.schedule.blocks import traversals
from mizzen.targets.ethos_u.generator.schedule.choices import ranked
from mizzen.targets.ethos_u.generator.schedule.cost import Constants, Stored, Traffic
from mizzen.targets.ethos_u.generator.schedule.facts import Facts, facts_of
from mizzen.targets.ethos_u.generator.shared_buffer import demand_on
from mizzen.targets.ethos_u.generator.tuned import ENCODED_WEIGHT_BYTES
from mizzen.targets.ethos_u.judge.timing.machine import machine_of
from mizzen.targets.ethos_u.machine.commands_values import Layout
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

RECORD_BYTES = 10


class Estimator:
    """Estimates operations of a system; weights are taken to be in the fastest memory.

    Constants that are read as maps are read where they lie.
    """

    def __init__(self, configuration: EthosUConfiguration, tensors: Rows[Tensor]) -> None:
        """Estimate operations over tensors, and over scratch tensors that are added after them."""
        self._machine = machine_of(configuration)
        self._constant = {
            index for index, tensor in enumerate(tensors) if tensor.role is Role.CONSTANT
        }

    def __call__(self, operation: Operation, layouts: Rows[Layout | None]) -> float:
        """Return the cycles of both models; those of a transfer through its slowest bus.

        layouts  of the tensors of its maps, each input's, then the output's; None for any
        """
        if isinstance(operation, Copy):
            return 2 * operation.moved_bytes / self._machine.cache.bytes_per_cycle
        accelerator = self._machine.accelerator
        facts, demand = facts_of(operation, accelerator), demand_on(operation, accelerator)
        shapes = (*facts.inputs, facts.stored_shape)
        maps = (*maps_read(operation), operation.ofm)
        *reads, write = (
            self._stored(map_, shape, layout)
            for map_, shape, layout in zip(maps, shapes, layouts, strict=True)
        )
        traffic = Traffic(tuple(reads), write, self._constants(operation, facts))
        traffics = (traffic,) * len(traversals(facts, demand))
        return ranked(facts, demand, traffics, self._machine).best.cycles

    def _stored(self, map_: Map, shape: Shape, layout: Layout | None) -> Stored:
        view, size = map_.view, map_.dtype.itemsize
        if isinstance(view, Bytes):
            bricks, stride = view.layout is Layout.NHCWB16, view.strides_bytes[1]
        else:
            whole = view.start[2] == 0 and shape[2] > BRICK // 2
            bricks = layout is Layout.NHCWB16 or (layout is None and whole)
            stride = (BRICK if bricks else shape[2]) * size * view.steps[1]
        machine = self._machine
        bus = machine.constants if map_.tensor in self._constant else machine.cache
        return Stored(bus=bus, shape=shape, element_bytes=size, bricks=bricks, stride_x=stride)

    def _constants(self, operation: Blockwise, facts: Facts) -> Constants | None:
        convolution = convolution_of(operation)
        if convolution is None:
            return None
        accelerator = self._machine.accelerator
        streams, cores = accelerator.weight_streams, accelerator.cores
        weights = round(ENCODED_WEIGHT_BYTES * convolution.weights.size / streams)
        records = RECORD_BYTES * -(-facts.shape[2] // cores)
        return Constants(self._machine.cache, (weights,) * streams, (records,) * cores)
