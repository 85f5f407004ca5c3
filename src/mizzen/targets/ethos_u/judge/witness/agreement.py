"""Whether a stream does what its witness says: every field that means something, every constant.

The stream is taken as the simulator reads it. Nothing here knows how a witness came about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.judge.sim.activation_functions import functions, sigmoid, tanh
from mizzen.targets.ethos_u.judge.sim.operations import (
    Accumulators,
    Binary,
    Convolution,
    Dma,
    Elementwise,
    FeatureMap,
    Function,
    Interpolation,
    MatrixProduct,
    Operation,
    Output,
    Pooling,
    Resize,
    Space,
    Steps,
    Upscale,
)
from mizzen.targets.ethos_u.judge.sim.plan import Computation, Plan, Step
from mizzen.targets.ethos_u.judge.sim.rounding import Rounding, Scale
from mizzen.targets.ethos_u.judge.sim.written_weights import WrittenWeightsKernel
from mizzen.targets.ethos_u.judge.witness.fields import (
    UPSCALINGS,
    Field,
    Fields,
    of_input,
    of_kernel,
    of_output,
    read_by_window,
)
from mizzen.targets.ethos_u.judge.witness.machines import MACHINES, WIDE_BYTES, Machine
from mizzen.targets.ethos_u.judge.witness.witness import (
    Mismatch,
    SaidActivation,
    SaidChannels,
    SaidConvolution,
    SaidElementwise,
    SaidKernel,
    SaidLines,
    SaidMap,
    SaidMatrixProduct,
    SaidNumber,
    SaidOperation,
    SaidPooling,
    SaidResize,
    SaidScale,
    SaidStep,
    SaidTransfer,
    Shape,
    Witness,
)
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode, RoundMode
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of

Array = npt.NDArray[Any]

KINDS: dict[type[SaidStep], type[Operation]] = {
    SaidConvolution: Convolution,
    SaidMatrixProduct: MatrixProduct,
    SaidPooling: Pooling,
    SaidElementwise: Elementwise,
    SaidResize: Resize,
    SaidTransfer: Dma,
}
POINT = SaidKernel(1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
CURVE_INPUTS = np.arange(-(1 << 17) - 2, (1 << 17) + 2)
"""All that curves tell apart, and what is beyond."""
TABLE_CURVES = {Function.TABLE_TANH: tanh, Function.TABLE_SIGMOID: sigmoid}
"""Curves that U55 has in hardware, and U85 as tables."""


def mismatches(witness: Witness, program: Program, plan: Plan) -> Iterator[Mismatch]:
    """Yield the fields in which a program differs from its witness, step by step.

    plan  of the program
    """
    against = _Against(program, plan, MACHINES[accelerator_of(program.hardware).arch])
    for place, (said, step) in enumerate(zip(witness.steps, plan.steps, strict=False)):
        for field in against.fields(said, step):
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


@dataclass(frozen=True, slots=True, eq=False)
class _Against:
    """What steps are held to: a program, the simulator's plan of it, and the machine."""

    program: Program
    plan: Plan
    machine: Machine

    def fields(self, said: SaidStep, step: Step) -> Fields:
        """Yield what is said of a step, and what was read."""
        match said, step.operation:
            case SaidConvolution(), Convolution() as read:
                yield from self._convolution(said, read, step)
            case SaidMatrixProduct(), MatrixProduct() as read:
                yield from self._product(said, read)
            case SaidPooling(), Pooling() as read:
                yield from self._pooling(said, read)
            case SaidElementwise(), Elementwise() as read:
                yield from self._elementwise(said, read)
            case SaidResize(), Resize() as read:
                yield from self._resize(said, read)
            case SaidTransfer(), Dma() as read:
                yield from _transfer(said, read, self.program)
            case _, read:
                yield Field("kind", KINDS[type(said)].__name__, type(read).__name__)
                return
        if not isinstance(said, SaidTransfer) and not isinstance(step.operation, Dma):
            yield from self._table(said.activation, step.operation)

    def _table(self, said: SaidActivation, read: Computation) -> Fields:
        table = self.plan.tables.get(_offset_bytes(read))
        curve = TABLE_CURVES.get(read.output.activation.function)
        if said.table is None and curve is not None:
            look_up, _ = functions(read.output, table)
            assert look_up is not None, "it is a curve"
            yield Field("curve", curve(CURVE_INPUTS), look_up(CURVE_INPUTS))
        elif said.table is not None or table is not None:
            yield Field("table", said.table, table)

    def _output(self, said: SaidOperation, scale: SaidScale | None, read: Output) -> Fields:
        yield from of_output(said, scale, read, self.program, self.machine)

    def _accumulators(
        self, said: SaidConvolution | SaidMatrixProduct | SaidPooling, read: Accumulators
    ) -> Fields:
        wanted = Accumulators(self.machine.accumulator_bits[said.accumulators])
        yield Field("accumulators", wanted, read)

    # Convolutions and products

    def _convolution(self, said: SaidConvolution, read: Convolution, step: Step) -> Fields:
        yield Field("depthwise", said.depthwise, read.depthwise)
        yield from of_kernel(said.kernel, read.kernel)
        computed = said.order.computed(said.ofm.shape)
        height, width, depth = read_by_window(said.ifm, said.kernel, computed, said.upscale)
        depth = computed[2] if said.depthwise else depth
        yield from of_input("ifm", said.ifm, (height, width, depth), read.ifm, self.program)
        yield Field("upscaling", UPSCALINGS[said.upscale], read.upscale)
        yield from self._accumulators(said, read.accumulators)
        yield from self._output(said, None, read.output)
        encoded = self.plan.encoded.get(_offset_bytes(read))
        if said.weights is None:
            streams = tuple(
                (stream.region, stream.offset, stream.length) for stream in read.weights
            )
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

    def _product(self, said: SaidMatrixProduct, read: MatrixProduct) -> Fields:
        yield from of_kernel(POINT, read.kernel)
        height, width, depth = said.order.computed(said.ofm.shape)
        channels = said.ifm.shape[2]
        yield from of_input("ifm", said.ifm, (height, width, channels), read.ifm, self.program)
        yield from of_input("ifm2", said.ifm2, (1, depth, channels), read.weights, self.program)
        yield Field("upscaling", Upscale.NONE, read.upscale)
        yield from self._accumulators(said, read.accumulators)
        yield from self._output(said, said.scale, read.output)

    # Pooling and resizing

    def _pooling(self, said: SaidPooling, read: Pooling) -> Fields:
        pooled = self.machine.pooled(said)
        yield Field("mode", pooled.mode, read.mode)
        yield from of_kernel(said.kernel, read.kernel)
        computed = said.order.computed(said.ofm.shape)
        height, width, depth = read_by_window(said.ifm, said.kernel, computed, said.upscale)
        if said.mode is not PoolingMode.REDUCE_SUM:
            depth = computed[2]
        yield from of_input("ifm", said.ifm, (height, width, depth), read.ifm, self.program)
        yield Field("upscaling", UPSCALINGS[said.upscale], read.upscale)
        yield from self._accumulators(said, read.accumulators)
        yield Field("division by elements", pooled.divided, read.divided)
        yield Field("scale streams", (), read.scales)
        scale = pooled.scale
        if pooled.divided and scale is not None and (one := _one(read.output)) is not None:
            said, scale = replace(said, rounding=RoundMode.NATURAL), one
        yield from self._output(said, scale, read.output)

    def _resize(self, said: SaidResize, read: Resize) -> Fields:
        yield Field("mode", Interpolation[said.mode.name], read.mode)
        yield from of_input("ifm", said.ifm, said.ifm.shape, read.ifm, self.program)
        for name, wanted, came in (
            ("rows", said.rows, read.rows),
            ("columns", said.columns, read.columns),
        ):
            yield Field(f"steps of {name}", Steps(wanted.scale, wanted.step, wanted.offset), came)
        yield from self._output(said, said.scale, read.output)

    # Elementwise

    def _elementwise(self, said: SaidElementwise, read: Elementwise) -> Fields:
        yield Field("mode", Binary[said.mode.name], read.mode)
        exchanged = said.reversed and self.machine.exchanges
        yield Field("order of operands", said.reversed and not exchanged, read.reversed)
        names = ("ifm2", "ifm") if exchanged else ("ifm", "ifm2")
        computed = said.order.computed(said.ofm.shape)
        operands = {"ifm": said.ifm, "ifm2": said.ifm2}
        scales = dict(zip(("ifm", "ifm2"), self.machine.operand_scales(said), strict=True))
        for name, operand in zip(names, (read.a, read.b), strict=True):
            yield from self._operand(name, operands[name], operand, computed)
        for name, scale in zip(names, (read.scale_a, read.scale_b), strict=True):
            yield Field(f"scale of {name}", _told(scales[name]), _told(scale))
        yield from self._output(said, self.machine.result_scale(said), read.output)

    def _operand(
        self,
        name: str,
        said: SaidMap | SaidNumber | None,
        read: FeatureMap | int | None,
        computed: Shape,
    ) -> Fields:
        match said, read:
            case SaidMap(), FeatureMap():
                shape = said.shape if name == "ifm2" else _repeated(said.shape, computed)
                yield from of_input(name, said, shape, read, self.program)
            case SaidNumber(), int():
                zero_point = (
                    0 if said.dtype.itemsize >= WIDE_BYTES else _signed(said.zero_point, 16)
                )
                bits = 32 if self.machine.wide_scalars else 16
                yield Field(name, _signed(said.value, bits) - zero_point, read)
            case None, None:
                return
            case _:
                yield Field(f"{name} kind", type(said).__name__, type(read).__name__)


def _repeated(shape: Shape, computed: Shape) -> Shape:
    """Return what is read of a map that is repeated along axes of extent 1."""
    height, width, depth = (
        1 if size == 1 else extent for size, extent in zip(shape, computed, strict=True)
    )
    return height, width, depth


def _told(scale: Scale | None) -> Scale | None:
    """Return a scale without its rounding where nothing is rounded."""
    if scale is None or scale.shift:
        return scale
    return Scale(scale.multiplier, 0, Rounding.NATURAL)


def _offset_bytes(operation: Operation) -> int:
    return 4 * (operation.where.origin.command or 0)


def _signed(value: int, bits: int) -> int:
    """Return the number that a register holds."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _one(output: Output) -> SaidScale | None:
    """Return the scale of results if it is one, in whatever units, and they are rounded once."""
    if output.scale is None or output.rounding is not Rounding.NATURAL:
        return None
    multiplier, shift = output.scale
    return SaidScale(multiplier, shift) if multiplier == 1 << shift else None


def _channels(said: SaidChannels, *read: np.ndarray[Any, np.dtype[np.int64]]) -> Fields:
    biases, multipliers, shifts = read
    yield Field("biases", said.biases, biases)
    yield Field("multipliers", said.multipliers, multipliers)
    yield Field("shifts", said.shifts, shifts)


# Transfers


def _transfer(said: SaidTransfer, read: Dma, program: Program) -> Fields:
    if said.lines is None:
        yield Field("transfer by indices", None, read.indices)
        yield Field("runs", (1, 1), (read.rows, read.planes))
    else:
        yield from _lines(said.lines, read, program)
    spaces = read.source.space, read.destination.space
    yield Field("memories", (Space.EXTERNAL, Space.EXTERNAL), spaces)
    to = read.destination.region, read.destination.offset
    yield Field("destination", said.destination, to)
    if said.source is not None:
        yield Field("source", said.source, (read.source.region, read.source.offset))
    fits = said.length_bytes <= read.length <= said.most_bytes
    yield Field("length", said.length_bytes, said.length_bytes if fits else read.length)
    if said.constant is not None:
        place = read.source.region, read.source.offset
        yield Field("bytes", said.constant, _bytes_at(program, place, len(said.constant)))


def _lines(said: SaidLines, read: Dma, program: Program) -> Fields:
    yield Field("runs", (said.count, 1), (read.rows, read.planes))
    strides = read.source.row_stride, read.destination.row_stride
    yield Field("distances of lines", said.strides, strides)
    indices = read.indices
    if indices is None:
        yield Field("transfer by indices", True, False)
        return
    yield Field("side that is named", said.scatters, indices.scatters)
    yield Field("greatest index", said.greatest, indices.greatest)
    place = indices.stream.region, indices.stream.offset
    if said.indices is not None:
        yield Field("indices", said.indices, place)
    if said.constant is not None:
        found = _bytes_at(program, place, len(said.constant))
        yield Field("numbers of indices", said.constant, found)


def _bytes_at(
    program: Program, place: tuple[int, int], length: int
) -> npt.NDArray[np.uint8] | None:
    region, start = place
    data = program.constants.get(region)
    return None if data is None else data[start : start + length]
