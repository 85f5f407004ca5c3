"""The text of a sequence, for people, tests and files; in the style of the text of a graph.

.. code-block:: text

    sequence(%x: tensor<8x8x16xi8, NHWC>) {
      %y = TENSOR : tensor<8x8x32xi8, NHWC>
      %y[:, :, 0:16] = CONV(%x zp -128) {kernel = [3, 3], ...} : tensor<8x8x16xi8>
      %y[:, :, 16:32] = MAX(%x@0<8x8x16xi8>, scalar<i8 3>) : tensor<8x8x16xi8, zp 5>
      return %y
    }

A tensor has its name, or the number of its place; of several with one name, the second is
``%name.1``. Brackets hold the rows, columns and channels of a box, ``:`` for all of them and
``0:7:2`` for every second. A map of bytes has its offset and type: ``%x@64<4x4x16xi8>``, with
strides where its rows do not follow each other. A zero point is written where it is not 0, a layout
where a tensor must have it.

What an operation writes stands left, with its type right. A tensor that is written in
parts, or in another shape, is declared before it is used. Operands stand in the operation's order;
``ifm2 = first`` says that the first of them is the second map of the registers.

Attributes stand where they say something: no stride of 1, no pad of 0, no clip to all numbers of
the type, and rounding, upscaling, accumulators, scale mode and clip range only if they are not the
first of their kind. An output scale that is not written is none. Pads are top, left, bottom, right;
``[multiplier, shift]`` is a scale; of an operand of U85 rounding and what it is shifted by before
may follow.

A chain has a line for each of its links, and what else is known of it stands at its end:

.. code-block:: text

      chain {
        %0 = CONV(%x) {kernel = [1, 1], ...} : tensor<8x8x16xi8>
        %y = ADD(%0, %x) {scale = [1, 0]} : tensor<8x8x16xi8>
      }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from mizzen.graph.notation import array_text, list_text, name_text, origin_text
from mizzen.targets.ethos_u.generator.operations.maps import (
    Box,
    Bytes,
    Map,
    Role,
    Shape,
    Tensor,
)
from mizzen.targets.ethos_u.generator.operations.operations import (
    AS_COMPUTED,
    Activation,
    Chain,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Kernel,
    MatrixProduct,
    OperandScale,
    Operation,
    Order,
    Pooling,
    Resize,
    Scalar,
    Scale,
    Steps,
    WrittenWeights,
    links_of,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout

Numbers = np.dtype[np.integer[Any]]
Attribute = tuple[str, str]

INDENT = "  "
NO_FUNCTION = "RELU"
"""What `Activation` has for none; the clip is what makes it a RELU."""


class SequenceText:
    """Writes the lines of a sequence, of which a schedule's text has more.

    tensors, operations, inputs, outputs  as in `Sequence`
    places  where each tensor lies, in words, empty for nowhere; nothing if no tensor lies anywhere
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        operations: Sequence[Operation],
        inputs: Sequence[int],
        outputs: Sequence[int],
        places: Sequence[str] = (),
    ) -> None:
        self._tensors = tensors
        self._operations = operations
        self._inputs = inputs
        self._outputs = outputs
        self._places = places
        self._names = _names(tensors)

    def __str__(self) -> str:
        """Return all lines, one for each operation in its order."""
        lines = [f"sequence({self.interface()}) {{"]
        told = set(self._inputs)
        for operation in self._operations:
            lines += [INDENT + line for line in self.declarations(operation, told)]
            lines += [INDENT + line for line in self.lines(operation)]
        return "\n".join((*lines, INDENT + self.returned(), "}"))

    def interface(self) -> str:
        """Return names, types and places of the inputs; of a state, that it is one."""
        return ", ".join(map(self._input, self._inputs))

    def _input(self, tensor: int) -> str:
        given = self._tensors[tensor]
        state = ("state",) if given.role is Role.STATE else ()
        return " ".join(
            (f"{self._names[tensor]}:", _tensor_type(given), *self._place(tensor), *state)
        )

    def _place(self, tensor: int) -> tuple[str, ...]:
        place = self._places[tensor] if self._places else ""
        return (place,) if place else ()

    def returned(self) -> str:
        """Return the line of the outputs."""
        return " ".join(
            ("return", ", ".join(self._names[tensor] for tensor in self._outputs))
        ).rstrip()

    def declarations(self, operation: Operation, told: set[int]) -> list[str]:
        """Return the lines of tensors that an operation is the first to use, and count them."""
        inside = (link.ofm.tensor for link in links_of(operation)[:-1])
        used = (*tensors_read(operation), *inside, tensor_written(operation))
        return [line for tensor in used for line in self._declaration(tensor, told)]

    def _declaration(self, tensor: int, told: set[int]) -> Iterator[str]:
        if tensor in told:
            return
        told.add(tensor)
        declared = self._tensors[tensor]
        if declared.data is not None:
            kind = f"CONST {{values = {_constant(declared, declared.data)}}}"
        elif tensor not in self._written_whole:
            kind = "TENSOR"
        else:
            return
        place = self._place(tensor)
        yield " ".join((self._names[tensor], "=", kind, ":", _tensor_type(declared), *place))

    @cached_property
    def _written_whole(self) -> set[int]:
        """The tensors whose type the line of the operation tells that is their only writer."""
        counts: dict[int, int] = {}
        whole: set[int] = set()
        steps = (step for each in self._operations for step in links_of(each) or (each,))
        for step in steps:
            tensor = tensor_written(step)
            counts[tensor] = counts.get(tensor, 0) + 1
            if not isinstance(step, Copy) and self._is_whole(step.ofm):
                whole.add(tensor)
        return {tensor for tensor in whole if counts[tensor] == 1}

    def _is_whole(self, map_: Map) -> bool:
        """Whether a map is all of a tensor, as the tensor has it."""
        whole = self._tensors[map_.tensor]
        return map_.view == Box(map_.tensor, whole.shape) and map_.dtype == whole.dtype

    def lines(self, operation: Operation, *how: str) -> list[str]:
        """Return the lines of an operation.

        how  what else is known of it, between its type and its origin
        """
        if isinstance(operation, Chain):
            links = (INDENT + self._line(link) for link in operation.links)
            return ["chain {", *links, " ".join(("}", *how))]
        return [self._line(operation, *how)]

    def _line(self, operation: Computation | Copy, *how: str) -> str:
        if isinstance(operation, Copy):
            parts = self._copy(operation)
        else:
            attributes = ", ".join(f"{key} = {text}" for key, text in self._attributes(operation))
            braces = [f"{{{attributes}}}"] if attributes else []
            layout = self._tensors[operation.ofm.tensor].layout
            parts = [self._view(operation.ofm), "=", self._call(operation), *braces, ":"]
            parts.append(_type(operation.ofm.shape, operation.ofm.dtype, layout, operation.ofm))
            if operation.ofm.tensor in self._written_whole:
                parts += self._place(operation.ofm.tensor)
        origin = origin_text(operation.origin)
        return " ".join((*parts, *how, *(() if origin == "{}" else ("from", origin))))

    def _copy(self, copy: Copy) -> list[str]:
        target = f"{self._names[copy.destination]}@{copy.destination_offset_bytes}"
        source = f"{self._names[copy.source]}@{copy.source_offset_bytes}"
        length = f"length_bytes = {copy.length_bytes}"
        if copy.lines is None:
            return [target, "=", f"COPY({source})", f"{{{length}}}"]
        lines = copy.lines
        kind = "SCATTER" if lines.scatters else "GATHER"
        indices = f"{self._names[lines.indices]}@{lines.offset_bytes}"
        steps = "x".join(map(str, lines.strides_bytes))
        said = f"{length}, count = {lines.count}, strides_bytes = {steps}"
        braces = f"{{{said}, greatest = {lines.greatest}}}"
        return [target, "=", f"{kind}({source}, {indices})", braces]

    def _call(self, operation: Computation) -> str:
        match operation:
            case MatrixProduct(ifm=ifm, ifm2=ifm2):
                operands, kind = [self._operand(ifm), self._operand(ifm2)], "MATRIX_PRODUCT"
            case Resize(ifm=ifm, mode=mode):
                operands, kind = [self._operand(ifm)], f"RESIZE_{mode.name}"
            case Convolution():
                operands = [self._operand(operation.ifm)]
                if operation.written is not None:
                    operands.append(self._names[operation.written.tensor])
                kind = "DEPTHWISE" if operation.depthwise else "CONV"
            case Pooling():
                operands, kind = [self._operand(operation.ifm)], f"POOL_{operation.mode.name}"
            case Elementwise():
                operands = [self._operand(operation.ifm)]
                if operation.ifm2 is not None:
                    operands.insert(0 if operation.reversed else 1, self._operand(operation.ifm2))
                kind = operation.mode.name
        return f"{kind}({', '.join(operands)})"

    def _operand(self, operand: Map | Scalar) -> str:
        point = f" zp {operand.zero_point}" if operand.zero_point else ""
        if isinstance(operand, Scalar):
            return f"scalar<{_dtype(operand.dtype)} {operand.value}{point and ',' + point}>"
        return f"{self._view(operand)}{point}"

    def _view(self, map_: Map) -> str:
        """Return what a map is of a tensor."""
        whole = self._tensors[map_.tensor]
        match map_.view:
            case Box() as box:
                dtype = "" if map_.dtype == whole.dtype else f"<{_dtype(map_.dtype)}>"
                return f"{self._names[map_.tensor]}{_box(box, whole.shape)}{dtype}"
            case Bytes() as view:
                return f"{self._names[map_.tensor]}@{_bytes(view, map_.dtype)}"

    def _attributes(self, operation: Computation) -> Iterator[Attribute]:
        match operation:
            case MatrixProduct():
                yield "scale", _scale(operation.scale)
            case Resize():
                yield "rows", _steps(operation.rows)
                yield "columns", _steps(operation.columns)
                yield "scale", _scale(operation.scale)
            case Convolution():
                yield from _kernel(operation.kernel)
                yield from _chosen(upscale=operation.upscale)
                yield from _weights(operation)
            case Pooling():
                yield from _kernel(operation.kernel)
                yield from _chosen(upscale=operation.upscale)
                yield "scale", _scale(operation.scale)
            case Elementwise():
                yield from _scales(operation)
        yield from _chosen(rounding=operation.rounding)
        if not isinstance(operation, Elementwise | Resize):
            yield from _chosen(accumulators=operation.accumulators)
        yield from _activation(operation.activation, operation.ofm.dtype)
        yield from _order(operation.order)


def _names(tensors: Iterable[Tensor]) -> list[str]:
    """Return a name for each tensor, which others that come or go do not change."""
    names: list[str] = []
    taken: set[str] = set()
    counts: dict[str, int] = {}
    for tensor in tensors:
        name = tensor.name
        while not name or name in taken:
            number = counts.get(tensor.name, int(tensor.name != ""))
            counts[tensor.name] = number + 1
            name = f"{tensor.name}.{number}" if tensor.name else str(number)
        taken.add(name)
        names.append(f"%{name_text(name) if tensor.name else name}")
    return names


def _dtype(dtype: Numbers) -> str:
    return f"{'u' if dtype.kind == 'u' else 'i'}{8 * dtype.itemsize}"


def _sized(shape: Shape, dtype: Numbers) -> str:
    return f"{'x'.join(map(str, shape))}x{_dtype(dtype)}"


def _type(shape: Shape, dtype: Numbers, layout: Layout | None, map_: Map | None = None) -> str:
    parts = [_sized(shape, dtype)]
    if map_ is not None and map_.zero_point:
        parts.append(f"zp {map_.zero_point}")
    if layout is not None:
        parts.append(layout.name)
    return f"tensor<{', '.join(parts)}>"


def _tensor_type(tensor: Tensor) -> str:
    return _type(tensor.shape, tensor.dtype, tensor.layout)


def _constant(tensor: Tensor, data: np.ndarray[Any, np.dtype[np.uint8]]) -> str:
    """Return a constant's elements; its bytes, if they are not just these."""
    if tensor.layout is not Layout.NHCWB16 and data.size == tensor.size_bytes(Layout.NHWC):
        return array_text(np.ascontiguousarray(data).view(tensor.dtype)).text
    return array_text(data).text


def _box(box: Box, whole: Shape) -> str:
    if box == Box(box.tensor, whole):
        return ""
    steps = (*box.steps, 1)
    axes = zip(box.start, box.shape, steps, whole, strict=True)
    return f"[{', '.join(_axis(*axis) for axis in axes)}]"


def _axis(start: int, size: int, step: int, whole: int) -> str:
    if (start, size, step) == (0, whole, 1):
        return ":"
    stop = start + (size - 1) * step + 1
    return f"{start}:{stop}" if step == 1 else f"{start}:{stop}:{step}"


def _bytes(view: Bytes, dtype: Numbers) -> str:
    parts = [_sized(view.shape, dtype)]
    if view.strides_bytes != Tensor("", view.shape, dtype).strides_bytes(view.layout):
        parts.append(f"strides_bytes {list_text(view.strides_bytes)}")
    if view.layout is not Layout.NHWC:
        parts.append(view.layout.name)
    tiles = view.tiles
    if tiles is not None:
        parts.append(
            f"tiles {list_text((tiles.height_0, tiles.height_1, tiles.width_0))} "
            f"at {list_text(tiles.offsets_bytes)}"
        )
    return f"{view.offset_bytes}<{', '.join(parts)}>"


def _chosen(**values: IntEnum) -> Iterator[Attribute]:
    """Yield those values that are not the first of their kind."""
    for name, value in values.items():
        if value:
            yield name, value.name.lower()


def _scale(scale: Scale) -> str:
    return list_text((scale.multiplier, scale.shift))


def _steps(steps: Steps) -> str:
    """Return where a resize reads along an axis: scale, step, offset."""
    return list_text((steps.scale, steps.step, steps.offset))


def _order(order: Order) -> Iterator[Attribute]:
    if order != AS_COMPUTED:
        yield from _chosen(transpose=order.transpose, reverse=order.reverse)


def _kernel(kernel: Kernel) -> Iterator[Attribute]:
    yield "kernel", list_text((kernel.height, kernel.width))
    if (kernel.stride_y, kernel.stride_x) != (1, 1):
        yield "stride", list_text((kernel.stride_y, kernel.stride_x))
    if (kernel.dilation_y, kernel.dilation_x) != (1, 1):
        yield "dilation", list_text((kernel.dilation_y, kernel.dilation_x))
    if any(kernel.pads):
        yield "pad", list_text(kernel.pads)


def _weights(operation: Convolution) -> Iterator[Attribute]:
    if operation.part_kernel is not None:
        yield "traversal", traversal_text(operation.part_kernel)
    if operation.written is None:
        yield "weights", array_text(operation.weights).text
    else:
        yield from _written(operation.written, operation.weights.shape)
    scales = operation.scales
    yield "biases", array_text(scales.biases).text
    yield "multipliers", array_text(scales.multipliers).text
    yield "shifts", array_text(scales.shifts).text


def _written(written: WrittenWeights, shape: tuple[int, ...]) -> Iterator[Attribute]:
    yield "weights", f"written{list_text(shape).replace(' ', '')}"
    yield "block_depth", str(written.block_depth)
    yield "streams_bytes", list_text(map(list_text, written.streams))


def _scales(operation: Elementwise) -> Iterator[Attribute]:
    if operation.ifm2 is not None and operation.reversed:
        yield "ifm2", "first"
    for name, scale in (
        ("scale", operation.scale),
        ("scale_a", operation.scale_a),
        ("scale_b", operation.scale_b),
    ):
        if scale is not None:
            yield name, _scale(scale)
    yield from _chosen(scale_mode=operation.scale_mode, ifm_rounding=operation.ifm_rounding)
    if operation.operand_scales is not None:
        yield "operand_scales", list_text(map(_operand_scale, operation.operand_scales))


def _operand_scale(scale: OperandScale | None) -> str:
    if scale is None:
        return "none"
    left = [f"left {scale.left}"] if scale.left else []
    parts = list_text((scale.multiplier, scale.shift)), scale.rounding.name.lower(), *left
    return " ".join(parts)


def _activation(activation: Activation, dtype: Numbers) -> Iterator[Attribute]:
    limits = np.iinfo(dtype if dtype.itemsize < 4 else np.int16)
    clip = activation.minimum, activation.maximum
    if clip != (int(limits.min), int(limits.max)):
        yield "clip", list_text(clip)
    yield from _chosen(clip_range=activation.clip_range)
    if activation.table is not None:
        yield "table", array_text(np.frombuffer(activation.table.data, np.uint8)).text
    if activation.function != NO_FUNCTION:
        yield "function", activation.function.lower()


def traversal_text(part_kernel: bool) -> str:
    """Return the order of a block's input channels and kernel elements, in words."""
    return "kernel_first" if part_kernel else "depth_first"
