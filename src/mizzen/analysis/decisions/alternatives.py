"""The blocks that an operation of a stream of U55 or U65 could have, and what they would cost."""

from __future__ import annotations

from mizzen.report.decisions import PricedBlock
from mizzen.targets.ethos_u.generator.operations import Blocking, Shape
from mizzen.targets.ethos_u.generator.schedule.blocks import traversals
from mizzen.targets.ethos_u.generator.schedule.choices import Choice, priced, ranked
from mizzen.targets.ethos_u.generator.schedule.cost import Constants, Stored, Traffic
from mizzen.targets.ethos_u.generator.schedule.facts import UNARY, Facts, Function, Kind
from mizzen.targets.ethos_u.generator.shared_buffer import DEPTH_FIRST_BYTES, Demand, subkernel_side
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


def order_of(work: KernelWork) -> str:
    """Return the order of the input's channels; empty where there is but one."""
    if work.kind is not WorkKind.CONVOLUTION:
        return ""
    return KERNEL_FIRST if work.part_kernel else DEPTH_FIRST


def alternatives(
    work: KernelWork, registers: Registers, machine: Machine
) -> tuple[PricedBlock, PricedBlock | None, int]:
    """Return an operation's block with its cycles, the best other one, and how many fit.

    registers  that the operation starts with
    """
    facts, demand = _facts(work, registers), _demand(work, registers)
    traffic = _traffic(work, machine)
    ranking = ranked(facts, demand, (traffic,) * len(traversals(facts, demand)), machine)
    taken = Blocking(work.blocks.block, work.part_kernel)
    other = next(
        (
            candidate
            for candidate in (ranking.best, ranking.second)
            if candidate is not None and candidate.blocking != taken
        ),
        None,
    )
    return (
        _row(priced(facts, taken, traffic, machine), facts),
        None if other is None else _row(other, facts),
        ranking.considered,
    )


def _row(choice: Choice, facts: Facts) -> PricedBlock:
    order = ""
    if facts.kind is Kind.CONVOLUTION:
        order = KERNEL_FIRST if choice.blocking.part_kernel else DEPTH_FIRST
    return PricedBlock(
        choice.blocking.block, order, round(choice.by_events), round(choice.by_formula)
    )


def _facts(work: KernelWork, registers: Registers) -> Facts:
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
        reserves_second=_reserves_second(work, registers),
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


def _demand(work: KernelWork, registers: Registers) -> Demand:
    facts = _facts(work, registers)
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


def _traffic(work: KernelWork, machine: Machine) -> Traffic:
    result = work.blocks.result
    assert result is not None
    reads = tuple(_stored_input(item, machine) for item in work.blocks.inputs)
    return Traffic(
        reads, _stored(result.map, work.blocks.shape, machine), _constants(work, machine)
    )


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
    return Constants(bus, weights, scales)
