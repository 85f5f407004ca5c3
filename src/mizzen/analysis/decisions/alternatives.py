"""The blocks that an operation of a stream of U55 or U65 could have, and what they would cost.

What holds for U85 too is public; the rest of that is in `alternatives_u85`.
"""

from __future__ import annotations

from dataclasses import replace

from mizzen.report.decisions import PricedBlock
from mizzen.targets.ethos_u.generator.operations import Blocking, Shape
from mizzen.targets.ethos_u.generator.schedule.blocks import traversals
from mizzen.targets.ethos_u.generator.schedule.choices import Choice, priced, ranked
from mizzen.targets.ethos_u.generator.schedule.cost import Constants, Stored, Traffic
from mizzen.targets.ethos_u.generator.schedule.facts import UNARY, Facts, Function, Kind
from mizzen.targets.ethos_u.generator.shared_buffer import (
    DEPTH_FIRST_BYTES,
    AnyDemand,
    Demand,
    subkernel_side,
)
from mizzen.targets.ethos_u.judge.hazards.blocks import Input
from mizzen.targets.ethos_u.judge.hazards.maps import Map
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.judge.timing import KernelWork, WorkKind
from mizzen.targets.ethos_u.judge.timing.machine import Machine
from mizzen.targets.ethos_u.machine.commands_values import AccFormat, UpscaleMode

KERNEL_FIRST, DEPTH_FIRST = "kernel first", "depth first"
FUNCTIONS = {"": Function.NONE, "relu": Function.RELU, "table": Function.TABLE}
FIRST_TABLE = 16
"""Activation function number of the first lookup table."""
UNARY_NAMES = {mode.name for mode in UNARY}
Alternatives = tuple[PricedBlock | None, PricedBlock | None, int]
"""An operation's block, the best other one, and how many fit; nothing of what is not known."""


def order_of(work: KernelWork) -> str:
    """Return the order of the input's channels; empty where there is but one."""
    if work.kind is not WorkKind.CONVOLUTION:
        return ""
    return KERNEL_FIRST if work.part_kernel else DEPTH_FIRST


def alternatives(work: KernelWork, registers: Registers, machine: Machine) -> Alternatives:
    """Return an operation's block with its cycles, the best other one, and how many fit.

    registers  that the operation starts with
    """
    facts = facts_of_work(work, registers)
    facts = replace(facts, reserves_second=_reserves_second(work, registers))
    demand = _demand(facts, registers)
    return others(work, facts, demand, traffic_of(work, machine, work.blocks.shape), machine)


def others(
    work: KernelWork, facts: Facts, demand: AnyDemand, traffic: Traffic, machine: Machine
) -> Alternatives:
    """Return the same of an operation whose facts are known."""
    ranking = ranked(facts, demand, (traffic,) * len(traversals(facts, demand)), machine)
    blocking = Blocking(work.blocks.block, work.part_kernel, work.fast_weights)
    taken = _row(priced(facts, blocking, traffic, machine), facts)
    ranks = [_row(choice, facts) for choice in (ranking.best, ranking.second) if choice is not None]
    other = next(
        (row for row in ranks if (row.block, row.order) != (taken.block, taken.order)), None
    )
    return taken, other, ranking.considered


def _row(choice: Choice, facts: Facts) -> PricedBlock:
    order = ""
    if facts.kind is Kind.CONVOLUTION:
        order = KERNEL_FIRST if choice.blocking.part_kernel else DEPTH_FIRST
    return PricedBlock(
        choice.blocking.block, order, round(choice.by_events), round(choice.by_formula)
    )


def facts_of_work(work: KernelWork, registers: Registers) -> Facts:
    """Return the facts of an operation as registers have them; U85 has more."""
    kernel, strides, dilations, pads = (1, 1), (1, 1), (1, 1), (0, 0)
    upscale = UpscaleMode.NONE
    if work.kind is not WorkKind.ELEMENTWISE:
        number, fields = registers.number, registers.fields("SET_KERNEL_STRIDE")
        kernel = number("SET_KERNEL_HEIGHT_M1"), number("SET_KERNEL_WIDTH_M1")
        strides = int(fields["stride_y"]), int(fields["stride_x"])
        dilations = int(fields["dilation_y"]) + 1, int(fields["dilation_x"]) + 1
        pads = number("SET_IFM_PAD_TOP"), number("SET_IFM_PAD_LEFT")
        upscale = UpscaleMode[registers.choice("SET_IFM_UPSCALE", "mode")]
    return Facts(
        kind=Kind(work.kind.value),
        mode=work.mode,
        shape=work.blocks.shape,
        inputs=tuple(item.map.shape for item in work.blocks.inputs),
        input_bits=work.input_bits,
        output_bits=work.output_bits,
        kernel=kernel,
        strides=strides,
        dilations=dilations,
        pads=pads,
        upscale=upscale,
        accumulators=AccFormat.I40 if work.wide else AccFormat.I32,
        function=FUNCTIONS[work.activation],
        simple=work.simple,
        microblock=work.microblock,
        slab=DEPTH_FIRST_BYTES // (work.input_bits // 8),
    )


def _reserves_second(work: KernelWork, registers: Registers) -> bool:
    """Whether an elementwise operation has room for a second input in the shared buffer."""
    if work.kind is not WorkKind.ELEMENTWISE:
        return False
    if work.mode in UNARY_NAMES:
        return True
    scalar = bool(registers.fields("SET_IFM2_BROADCAST")["broadcast_constant"])
    return not (scalar and registers.element_bytes("IFM2") <= 2)


def _demand(facts: Facts, registers: Registers) -> Demand:
    is_elementwise = facts.kind is Kind.ELEMENTWISE
    every = facts.kind in (Kind.CONVOLUTION, Kind.REDUCE_SUM)
    return Demand(
        kernel_height=subkernel_side(facts.kernel[0]),
        kernel_width=subkernel_side(facts.kernel[1]),
        stride_y=facts.strides[0],
        stride_x=facts.strides[1],
        upscale=1 if facts.upscale is UpscaleMode.NONE else 2,
        replicates=facts.upscale is UpscaleMode.NEAREST,
        ifm_bytes=facts.input_bits // 8,
        ifm_depth=facts.inputs[0][2] if every else None,
        has_traversal=facts.kind is Kind.CONVOLUTION,
        has_table=table_slot(registers) is not None,
        accumulators=None if is_elementwise else facts.accumulators,
        inputs=2 if facts.reserves_second else 1,
        one_row=not is_elementwise and facts.shape[0] == 1 and facts.kernel[0] == 1,
    )


def table_slot(registers: Registers) -> int | None:
    """Return the slot of an operation's lookup table; None without one."""
    function = int(registers.fields("SET_ACTIVATION")["activation_function"])
    return None if function < FIRST_TABLE else function - FIRST_TABLE


def traffic_of(work: KernelWork, machine: Machine, stored: Shape) -> Traffic:
    """Return where an operation's maps and constants lie; `stored` is the output's shape there."""
    result = work.blocks.result
    assert result is not None
    reads = tuple(_stored_input(item, machine) for item in work.blocks.inputs)
    return Traffic(reads, _stored(result.map, stored, machine), _constants(work, machine))


def _stored_input(item: Input, machine: Machine) -> Stored:
    return _stored(item.map, item.map.shape, machine)


def _stored(map_: Map, shape: Shape, machine: Machine) -> Stored:
    bus = machine.bus(map_.place)
    assert bus is not None
    return Stored(bus, shape, map_.element_bytes, map_.bricks, map_.stride_x)


def _constants(work: KernelWork, machine: Machine) -> Constants | None:
    if not work.streams:
        return None
    bus = machine.bus(work.streams[0].place)
    assert bus is not None
    weights, scales = (
        tuple(stream.bytes_ for stream in work.streams if stream.what == what)
        for what in ("weights", "scales")
    )
    return Constants(bus, weights, scales, work.fast_weights)
