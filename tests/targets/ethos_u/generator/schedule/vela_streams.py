"""Operations of Vela's streams as facts and traffic, for the costs that we compute of them."""

from __future__ import annotations

from dataclasses import replace

from mizzen.targets.ethos_u.generator.schedule.cost import Constants, Stored, Traffic
from mizzen.targets.ethos_u.generator.schedule.facts import Facts, Function, Kind
from mizzen.targets.ethos_u.generator.shared_buffer import DEPTH_FIRST_BYTES
from mizzen.targets.ethos_u.judge.hazards.blocks import Sampled, Sliding
from mizzen.targets.ethos_u.judge.hazards.maps import Map
from mizzen.targets.ethos_u.judge.timing import KernelWork
from mizzen.targets.ethos_u.judge.timing.machine import Machine
from mizzen.targets.ethos_u.machine.commands_values import AccFormat, UpscaleMode

FUNCTIONS = {"": Function.NONE, "relu": Function.RELU, "table": Function.TABLE}


def facts_of_work(work: KernelWork) -> Facts:
    """Return the facts of an operation that was read from registers; without dilation."""
    result, slab = work.blocks.result, DEPTH_FIRST_BYTES // (work.input_bits // 8)
    facts = Facts(
        kind=Kind(work.kind.value),
        shape=work.blocks.shape,
        inputs=tuple(row.map.shape for row in work.blocks.inputs),
        input_bits=work.input_bits,
        output_bits=work.output_bits,
        function=FUNCTIONS[work.activation],
        microblock=work.microblock,
        slab=work.slab if work.is_u85 else slab,
        mode=work.mode,
        accumulators=AccFormat.I40 if work.wide else AccFormat.I32,
        simple=work.simple,
        axes=result.axes if result else (0, 1, 2),
        turned=work.turned,
        chained=work.chained,
        sparse=work.sparse,
    )
    window = work.blocks.inputs[0].window if work.blocks.inputs else None
    match window:
        case Sliding(y=y, x=x):
            return replace(
                facts,
                kernel=(y.extent, x.extent),
                strides=(y.stride, x.stride),
                pads=(y.pad, x.pad),
                upscale=UpscaleMode.NONE if y.upscale == 1 else UpscaleMode.NEAREST,
            )
        case Sampled(y=y, x=x):
            return replace(
                facts,
                kernel=(y.scale + 1, x.scale + 1),
                strides=(y.step, x.step),
                pads=(-y.offset, -x.offset),
                scales=(y.scale, x.scale),
            )
        case _:
            return facts


def traffic_of_work(work: KernelWork, machine: Machine) -> Traffic:
    """Return what an operation that was read from registers moves."""
    assert work.blocks.result is not None
    constants = None
    if work.streams:
        bus = machine.bus(work.streams[0].place)
        assert bus is not None
        weights, scales = (
            tuple(row.bytes_ for row in work.streams if row.what == what)
            for what in ("weights", "scales")
        )
        constants = Constants(bus, weights, scales, work.fast_weights)
    reads = tuple(_stored(row.map, machine) for row in work.blocks.inputs)
    return Traffic(reads, _stored(work.blocks.result.map, machine), constants)


def _stored(row: Map, machine: Machine) -> Stored:
    bus = machine.bus(row.place)
    assert bus is not None
    return Stored(bus, row.shape, row.element_bytes, row.bricks, row.stride_x)
