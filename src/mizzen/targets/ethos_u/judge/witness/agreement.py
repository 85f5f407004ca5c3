"""Whether a stream does what its witness says: every field that means something, every constant.

The stream is taken as the simulator reads it. Nothing here knows how a witness came about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.judge.sim.operations import (
    AccumulatorInput,
    Accumulators,
    Binary,
    Convolution,
    Dma,
    Elementwise,
    FeatureMap,
    Operation,
    Pool,
    Pooling,
    Space,
)
from mizzen.targets.ethos_u.judge.sim.plan import Plan, Step
from mizzen.targets.ethos_u.judge.sim.rounding import DOUBLING_BITS, Scale
from mizzen.targets.ethos_u.judge.sim.written_weights import WrittenWeightsKernel
from mizzen.targets.ethos_u.judge.witness.fields import (
    ROUNDINGS,
    UPSCALINGS,
    WIDE_BYTES,
    Field,
    Fields,
    of_input,
    of_kernel,
    of_output,
    read_by_window,
)
from mizzen.targets.ethos_u.judge.witness.witness import (
    Mismatch,
    SaidActivation,
    SaidChannels,
    SaidConvolution,
    SaidElementwise,
    SaidMap,
    SaidNumber,
    SaidPooling,
    SaidScale,
    SaidStep,
    SaidTransfer,
    Shape,
    Witness,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ElementwiseMode,
    IfmScaleMode,
    PoolingMode,
)
from mizzen.targets.ethos_u.machine.program import Program

Array = npt.NDArray[Any]

ACCUMULATOR_BITS = {AccFormat.I32: 32, AccFormat.I40: 40}
POOLS = {
    PoolingMode.MAX: Pool.MAX,
    PoolingMode.AVERAGE: Pool.AVERAGE,
    PoolingMode.REDUCE_SUM: Pool.REDUCE_SUM,
}
GAINED_BITS = {1: 20, 2: 15, 4: 15}
"""Before one of the operands of a sum is rescaled, by bytes of an element.
Ref: TFLite, kernels/add.cc, left_shift."""


def mismatches(witness: Witness, program: Program, plan: Plan) -> Iterator[Mismatch]:
    """Yield the fields in which a program differs from its witness, step by step.

    plan  of the program
    """
    for place, (said, step) in enumerate(zip(witness.steps, plan.steps, strict=False)):
        for field in _fields(said, step, program, plan):
            differs = _differing(field)
            if differs is not None:
                index, ours, theirs = differs
                command = step.operation.where.name
                yield Mismatch(place, command, said.origin, field.name, index, ours, theirs)
    said_steps, read_steps = len(witness.steps), len(plan.steps)
    if said_steps != read_steps:
        origin = witness.steps[-1].origin if witness.steps else None
        place = min(said_steps, read_steps)
        command = plan.steps[place].operation.where if place < read_steps else None
        yield Mismatch(
            place,
            "OP_STOP" if command is None else command.name,
            origin or plan.steps[-1].operation.where.origin,
            "number of steps",
            (),
            said_steps,
            read_steps,
        )


def _differing(field: Field) -> tuple[tuple[int, ...], object, object] | None:
    """Return the first difference: index, what is said, what was read."""
    if _is_array(field.said):
        return _of_arrays(field.said, field.read)
    return None if field.said == field.read else ((), field.said, field.read)


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _of_arrays(said: Array, read: Array | None) -> tuple[tuple[int, ...], object, object] | None:
    if read is None:
        return (), f"an array {said.shape}", None
    if read.shape != said.shape:
        return (), f"an array {said.shape}", f"an array {read.shape}"
    if np.array_equal(said, read):
        return None
    index = tuple(map(int, np.argwhere(said != read)[0]))
    return index, int(said[index]), int(read[index])


def _fields(said: SaidStep, step: Step, program: Program, plan: Plan) -> Fields:
    match said, step.operation:
        case SaidConvolution(), Convolution() as read:
            yield from _convolution(said, read, step, program, plan)
        case SaidPooling(), Pooling() as read:
            yield from _pooling(said, read, program)
        case SaidElementwise(), Elementwise() as read:
            yield from _elementwise(said, read, program)
        case SaidTransfer(), Dma() as read:
            yield from _transfer(said, read, program)
        case _, read:
            names = {
                SaidConvolution: "Convolution",
                SaidPooling: "Pooling",
                SaidElementwise: "Elementwise",
                SaidTransfer: "Dma",
            }
            yield Field("kind", names[type(said)], type(read).__name__)
            return
    if not isinstance(said, SaidTransfer):
        yield from _table(said.activation, step.operation, plan)


def _table(said: SaidActivation, read: Operation, plan: Plan) -> Fields:
    table = plan.tables.get(_offset_bytes(read))
    if said.table is not None or table is not None:
        yield Field("table", said.table, table)


def _offset_bytes(operation: Operation) -> int:
    return 4 * (operation.where.origin.command or 0)


# Convolutions


def _convolution(
    said: SaidConvolution, read: Convolution, step: Step, program: Program, plan: Plan
) -> Fields:
    yield Field("depthwise", said.depthwise, read.depthwise)
    yield from of_kernel(said.kernel, read.kernel)
    height, width, depth = read_by_window(said.ifm, said.kernel, said.ofm.shape, said.upscale)
    depth = said.ofm.shape[2] if said.depthwise else depth
    yield from of_input("ifm", said.ifm, (height, width, depth), read.ifm, program)
    yield Field("upscaling", UPSCALINGS[said.upscale], read.upscale)
    yield Field("accumulators", Accumulators(ACCUMULATOR_BITS[said.accumulators]),
                read.accumulators)  # fmt: skip
    yield from of_output(said.ofm, said.activation, said.rounding, None, read.output, program)
    encoded = plan.encoded.get(_offset_bytes(read))
    if said.weights is None:
        streams = tuple((stream.region, stream.offset, stream.length) for stream in read.weights)
        yield Field("weight streams", said.streams, streams)
        kernel = step.kernel
        scales = kernel.scales if isinstance(kernel, WrittenWeightsKernel) else None
    else:
        yield Field("weights", said.weights, None if encoded is None else encoded.weights)
        scales = None if encoded is None else encoded.scales
    if scales is not None:
        yield from _channels(said.channels, scales.bias, scales.multiplier, scales.shift)
    else:
        yield Field("scales", said.channels, None)


def _channels(said: SaidChannels, *read: np.ndarray[Any, np.dtype[np.int64]]) -> Fields:
    biases, multipliers, shifts = read
    yield Field("biases", said.biases, biases)
    yield Field("multipliers", said.multipliers, multipliers)
    yield Field("shifts", said.shifts, shifts)


# Pooling


def _pooling(said: SaidPooling, read: Pooling, program: Program) -> Fields:
    padded = any(
        (said.kernel.pad_top, said.kernel.pad_left, said.kernel.pad_bottom, said.kernel.pad_right)
    )
    divided = said.mode is PoolingMode.AVERAGE and padded
    yield Field("mode", POOLS[said.mode], read.mode)
    yield from of_kernel(said.kernel, read.kernel)
    height, width, depth = read_by_window(said.ifm, said.kernel, said.ofm.shape, said.upscale)
    if said.mode is not PoolingMode.REDUCE_SUM:
        depth = said.ofm.shape[2]
    yield from of_input("ifm", said.ifm, (height, width, depth), read.ifm, program)
    yield Field("upscaling", UPSCALINGS[said.upscale], read.upscale)
    wanted = Accumulators(ACCUMULATOR_BITS[said.accumulators], AccumulatorInput.ZERO)
    yield Field("accumulators", wanted, read.accumulators)
    yield Field("division by elements", divided, read.divided)
    yield Field("scale streams", (), read.scales)
    scale = None if said.mode is PoolingMode.MAX or divided else said.scale
    yield from of_output(said.ofm, said.activation, said.rounding, scale, read.output, program)


# Elementwise


def _elementwise(said: SaidElementwise, read: Elementwise, program: Program) -> Fields:
    mode = Binary[said.mode.name]
    yield Field("mode", mode, read.mode)
    yield Field("order of operands", said.reversed, read.reversed)
    yield from _operand("ifm", said.ifm, read.a, said.ofm.shape, program)
    yield from _operand("ifm2", said.ifm2, read.b, said.ofm.shape, program)
    scales = _operand_scales(said)
    if said.reversed:
        scales = scales[::-1]
    yield Field("scale of ifm", scales[0], read.scale_a)
    yield Field("scale of ifm2", scales[1], read.scale_b)
    scale = _result_scale(said)
    yield from of_output(said.ofm, said.activation, said.rounding, scale, read.output, program)


def _operand(
    name: str,
    said: SaidMap | SaidNumber | None,
    read: FeatureMap | int | None,
    ofm: Shape,
    program: Program,
) -> Fields:
    match said, read:
        case SaidMap(), FeatureMap():
            shape = said.shape if name == "ifm2" else ofm
            yield from of_input(name, said, shape, read, program)
        case SaidNumber(), int():
            zero_point = 0 if said.dtype.itemsize >= WIDE_BYTES else _signed(said.zero_point)
            yield Field(name, _signed(said.value) - zero_point, read)
        case None, None:
            return
        case _:
            yield Field(f"{name} kind", type(said).__name__, type(read).__name__)


def _signed(value: int) -> int:
    """Return the number that a register of 16 bits holds."""
    return (value + (1 << 15)) % (1 << 16) - (1 << 15)


UNSCALED = frozenset(
    (
        ElementwiseMode.MIN,
        ElementwiseMode.MAX,
        ElementwiseMode.SHL,
        ElementwiseMode.SHR,
        ElementwiseMode.CLZ,
        ElementwiseMode.LRELU,
    )
)
"""Operations whose results have no scale of their own."""


def _result_scale(said: SaidElementwise) -> SaidScale | None:
    if said.mode in UNSCALED or said.scale is None:
        return None
    if said.mode is ElementwiseMode.MUL and said.ifm.dtype.itemsize >= WIDE_BYTES:
        return SaidScale(1, said.scale.shift)  # products of 32 bits are shifted alone
    return said.scale


def _operand_scales(said: SaidElementwise) -> tuple[Scale | None, Scale | None]:
    """Return the scales of the first operand and of the second, before they change places."""
    if said.mode is ElementwiseMode.LRELU and said.scale is not None:
        rounding = ROUNDINGS[said.rounding]
        return None, Scale(said.scale.multiplier, said.scale.shift, rounding)
    is_sum = said.mode in (ElementwiseMode.ADD, ElementwiseMode.SUB)
    if not is_sum or said.scale_a is None:
        return None, None
    rounding, gained = ROUNDINGS[said.ifm_rounding], GAINED_BITS[said.ifm.dtype.itemsize]
    a = said.scale_a
    full = Scale(a.multiplier, a.shift, rounding, DOUBLING_BITS - gained)
    plain = Scale(1 << (gained - 1), 0, rounding)
    match said.scale_mode:
        case IfmScaleMode.OPA_32:
            return full, plain
        case IfmScaleMode.OPB_32:
            return plain, full
        case _:
            second = None if said.scale_b is None else Scale(said.scale_b.multiplier, 0, rounding)
            return Scale(a.multiplier, 0, rounding), second


# Transfers


def _transfer(said: SaidTransfer, read: Dma, program: Program) -> Fields:
    yield Field("transfer by indices", None, read.indices)
    yield Field("runs", (1, 1), (read.rows, read.planes))
    spaces = read.source.space, read.destination.space
    yield Field("memories", (Space.EXTERNAL, Space.EXTERNAL), spaces)
    to = read.destination.region, read.destination.offset
    yield Field("destination", said.destination, to)
    if said.source is not None:
        yield Field("source", said.source, (read.source.region, read.source.offset))
    fits = said.length_bytes <= read.length <= said.most_bytes
    yield Field("length", said.length_bytes, said.length_bytes if fits else read.length)
    if said.constant is not None:
        start, stop = read.source.offset, read.source.offset + len(said.constant)
        data = program.constants.get(read.source.region)
        yield Field("bytes", said.constant, None if data is None else data[start:stop])
