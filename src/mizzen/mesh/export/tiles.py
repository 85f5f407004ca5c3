"""The function of C that computes a tile.

Sums of products are the accelerator's: it calls a function for each finished sum, which does all
that follows position by position and stores the result. What else takes many elements is a loop
of the core. Values that such operations take and that do not lie in memory yet, and what they give
where other than that follows, are kept in the tile's scratch memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mizzen.diagnostics import fail
from mizzen.graph import Array, DType, Operation, Value
from mizzen.mesh.execution.cutting import Cut, cut
from mizzen.mesh.export.c_text import Constants, braced, count, integer
from mizzen.mesh.export.elements import INDENT, LOOPS, RULES, Elements
from mizzen.mesh.export.kernels import Container, Containers
from mizzen.mesh.export.pointwise import POINTWISE
from mizzen.mesh.export.views import Place, View, dense, part, view_of
from mizzen.mesh.mapping.memory import aligned
from mizzen.mesh.network.boxes import elements_of, shape_of
from mizzen.mesh.network.network import Layer
from mizzen.mesh.program import Compute, ElementProgram, MeshProgram, Region, RegionKind
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d, Matmul, Windowed

PRODUCTS = (Conv2d, DepthwiseConv2d, Matmul)
CONSTANTS = frozenset({"CONST", "CONST_SHAPE"})
SUM_BITS = 32


def operations_of(tile: Cut) -> list[Operation]:
    """Return the operations of a tile in an order of execution, constants left out."""
    return [operation for operation in tile.graph.sorted() if operation.kind not in CONSTANTS]


def has_form(operation: Operation, containers: Containers) -> bool:
    """Whether there is a form of C for an operation."""
    if containers.find(operation) is not None:
        return True
    if any(value.dtype.is_float for value in (*operation.operands, *operation.results)):
        return False
    is_known = operation.kind in POINTWISE or type(operation) in RULES
    return is_known or isinstance(operation, PRODUCTS)


def tile_functions(
    program: MeshProgram,
    element: ElementProgram,
    index: int,
    constants: Constants,
    containers: Containers,
    behind: Behind,
) -> str:
    """Return the functions of the tile that an instruction computes: the last is `compute_N`.

    Raises E531 as `cut`, E552 where data memory is too small for what C keeps.
    """
    instruction = element.instructions[index]
    assert isinstance(instruction, Compute)
    return _Tile(program, element, index, instruction, constants, containers, behind).text()


class Behind:
    """Scratch memory behind the last region, for tiles whose own is too small, one at a time."""

    def __init__(self, program: MeshProgram, element: ElementProgram) -> None:
        self.region = len(element.regions)
        self.address = aligned(element.data_bytes)
        self.size = 0
        self.most = program.machine.kind_of(element.element).data_bytes - self.address

    def take(self, layer: Layer, end: int) -> None:
        """Make it so large at least. E552 where the element has not so much memory.

        Whether the program itself fits is for its checker to say.
        """
        self.size = max(self.size, end)
        if 0 <= self.most < end:
            raise fail(
                "E552",
                f"layer {layer.name!r} must have {end} bytes of scratch memory in C, and "
                f"{self.most} are left in the element's data memory",
                origin=layer.origin,
                help="map the layer with fewer tiles beside it, or split it",
            )


@dataclass(frozen=True, slots=True)
class _Box:
    """An entry of a function's array of boxes: in a region's slot of the image, or in scratch."""

    region: int
    offset: int


class _Tile:
    def __init__(
        self,
        program: MeshProgram,
        element: ElementProgram,
        index: int,
        instruction: Compute,
        constants: Constants,
        containers: Containers,
        behind: Behind,
    ) -> None:
        self.element = element
        self.behind = behind
        self.containers = containers
        self.index = index
        self.layer = program.network.layers[instruction.kernel.layer]
        self.tile = cut(program.network, instruction.kernel)
        self.instruction = instruction
        self.constants = constants
        self.boxes: list[_Box] = []
        self.sources: dict[Value, View] = {}
        self.functions: list[str] = []
        self.lines: list[str] = []
        self.item_bytes = {
            tensor: program.network.tensors[tensor].item_bytes for tensor in self.layer.inputs
        }
        self.scratch = _scratch(element)
        self.scratch_used = 0
        self.behind_used = 0

    def text(self) -> str:
        """Return the functions."""
        self._take_operands()
        final = self.tile.graph.outputs[0]
        operations = operations_of(self.tile)
        streamed = next((each for each in reversed(operations) if self._streams(each)), None)
        for operation in operations:
            if operation is not streamed:
                self._stage(operation)
        region = self.element.regions[self.instruction.output]
        target = self._output(region, final)
        if isinstance(streamed, PRODUCTS):
            self._product(streamed, final, target, "finish")
        else:
            self._loop(final, target)
        return "\n".join([*self.functions, self._function()])

    def _take_operands(self) -> None:
        inputs = self.tile.graph.inputs
        for (place, box), value in zip(self.tile.takes, inputs, strict=False):
            region = self.instruction.operands[place]
            assert region is not None, "the checker says which operands a tile needs"
            outer = self.element.regions[region].box
            assert outer is not None
            item_bytes = self.item_bytes[self.layer.inputs[place]]
            whole = dense(self._box(region), shape_of(outer), item_bytes)
            self.sources[value] = part(whole, outer, box)
        for region, value in zip(
            self.instruction.sums, inputs[len(self.tile.takes) :], strict=True
        ):
            self.sources[value] = dense(self._box(region), value.shape, SUM_BITS // 8)

    def _output(self, region: Region, final: Value) -> View:
        outer, box = region.box, self.instruction.kernel.box
        assert outer is not None
        item_bytes = region.slot_bytes // max(elements_of(outer), 1)
        whole = dense(self._box(self.instruction.output), shape_of(outer), item_bytes)
        return part(whole, outer, box)

    def _box(self, region: int, offset: int = 0) -> str:
        """Return the name of a box, new or as it is."""
        box = _Box(region, offset)
        if box not in self.boxes:
            self.boxes.append(box)
        return f"boxes[{self.boxes.index(box)}]"

    def _streams(self, operation: Operation) -> bool:
        """Whether all that follows an operation does so position by position, to the end."""
        if not isinstance(operation, (*PRODUCTS, *LOOPS)):
            return False
        final, shape = self.tile.graph.outputs[0], operation.results[0].shape
        seen = {operation.results[0]}
        for other in operations_of(self.tile):
            if seen.isdisjoint(other.operands):
                continue
            if other.kind not in POINTWISE or other.results[0].shape != shape:
                return False
            seen.add(other.results[0])
        return final in seen

    def _stage(self, operation: Operation) -> None:
        """Keep what an operation gives, or takes and must find in memory."""
        if isinstance(operation, PRODUCTS):
            self._product(operation, operation.results[0], None, f"sums{len(self.boxes)}")
        elif isinstance(operation, LOOPS):
            value = operation.results[0]
            target = self._keep(value)
            self._loop(value, target)
            self.sources[value] = target
        else:
            container = self.containers.find(operation)
            if container is not None:
                self._kernel(operation, container)

    def _kernel(self, operation: Operation, container: Container) -> None:
        """Compute an operation on a kernel of the C runtime."""
        region, begin = self._room(container.arena_bytes)
        name, number = self.containers.name(container), len(self.lines)
        arena = f"{self._box(region, begin)}, {count(container.arena_bytes)}"
        opened = f"mesh_kernel_open({name}, {count(len(container.data))}, {arena})"
        self.lines += _unless(opened)
        for place, operand in enumerate(container.inputs):
            value, pointer = operation.operands[operand], f"in{number}_{place}"
            self.lines.append(
                f"{INDENT}uint8_t *const {pointer} = mesh_kernel_input({count(place)});"
            )
            self._loop(value, dense(pointer, value.shape, value.dtype.numpy.itemsize))
        self.lines += _unless("mesh_kernel_run()")
        for place, result in enumerate(container.outputs):
            value, pointer = operation.results[result], f"out{number}_{place}"
            self.lines.append(
                f"{INDENT}uint8_t *const {pointer} = mesh_kernel_output({count(place)});"
            )
            view = dense(pointer, value.shape, value.dtype.numpy.itemsize)
            self.sources[value] = view
            if any(isinstance(other, PRODUCTS) for other in operations_of(self.tile)):
                target = self._keep(value)
                self._loop(value, target)
                self.sources[value] = target

    def _keep(self, value: Value) -> View:
        """Return room in scratch memory for a value."""
        item_bytes = value.dtype.numpy.itemsize
        region, begin = self._room(prod(value.shape) * item_bytes)
        return dense(self._box(region, begin), value.shape, item_bytes)

    def _room(self, size: int) -> tuple[int, int]:
        """Return a region and where in it so many bytes of scratch memory are."""
        region, begin = self.scratch, self.scratch_used
        if region is not None and begin + size <= self.element.regions[region].slot_bytes:
            self.scratch_used = aligned(begin + size)
            return region, begin
        begin = self.behind_used
        self.behind.take(self.layer, begin + size)
        self.behind_used = aligned(begin + size)
        return self.behind.region, begin

    def _in_memory(self, value: Value) -> View:
        """Return where a value lies, putting it there if it does not yet."""
        view = view_of(value, self.sources)
        if view is None:
            view = self._keep(value)
            self._loop(value, view)
            self.sources[value] = view
        return view

    def _loop(self, value: Value, target: View) -> None:
        """Compute a value element by element."""
        place: Place = tuple(f"i{axis}" for axis in range(len(value.shape)))
        elements = Elements(dict(self.sources), self.constants, {})
        with_loops = list(enumerate(value.shape))
        self._nested(elements, with_loops, value, place, target)
        self.lines += elements.lines

    def _nested(
        self,
        elements: Elements,
        axes: Sequence[tuple[int, int]],
        value: Value,
        place: Place,
        target: View,
    ) -> None:
        if not axes:
            _store(elements, value, place, target)
            return
        (axis, extent), *others = axes
        name = f"i{axis}"
        if extent == 1:
            self._nested(elements, others, value, place, target)
            return
        with elements.block(f"for (uint32_t {name} = 0u; {name} < {count(extent)}; {name}++)"):
            self._nested(elements, others, value, place, target)

    def _product(self, operation: Operation, final: Value, target: View | None, name: str) -> None:
        """Let the accelerator compute sums; a function does what follows up to a value."""
        function = f"{name}_{self.index}"
        if isinstance(operation, Windowed):
            call = self._convolution(operation, function)
        else:
            call = self._matmul(operation, function)
        if target is None:
            target = self._keep(final)
        self.functions.append(self._finish(operation, final, target, function))
        self.lines.append(call)
        self.sources[final] = target

    def _finish(self, operation: Operation, final: Value, target: View, function: str) -> str:
        result = operation.results[0]
        elements = Elements(dict(self.sources), self.constants, {result: "found"})
        shape = result.shape
        names = tuple(f"i{axis}" if extent > 1 else "0u" for axis, extent in enumerate(shape))
        known = _corrected(operation, self.constants, names[-1])
        elements.say(f"const int64_t found = {known};")
        _store(elements, final, names, target)
        text = "\n".join(elements.lines)
        indices = [
            f"{INDENT}const uint32_t {name} = at[{axis}];"
            for axis, name in enumerate(names)
            if name != "0u" and name in text
        ]
        head = f"static void {function}(uint8_t *const *boxes, const uint32_t *at, int64_t sum)"
        unused = [] if indices else [f"{INDENT}(void)at;"]
        return "\n".join([head, "{", *unused, *indices, text, "}", ""])

    def _operand(self, value: Value, zero_point: int) -> str:
        view = self._in_memory(value)
        missing = 4 - len(view.extents)
        extents = [*view.extents, *[1] * missing]
        strides = [*view.strides, *[0] * missing]
        return (
            f"{{{view.pointer}, {count(view.item_bytes)}, {braced(extents)}, {braced(strides)}, "
            f"{integer(zero_point)}}}"
        )

    def _convolution(self, operation: Windowed, function: str) -> str:
        weights = _known(operation.weight)
        weight_zero_point = int(_known(operation.weight_zp)[0])
        zero_point = int(_known(operation.input_zp)[0])
        is_depthwise = isinstance(operation, DepthwiseConv2d)
        multiplier = weights.shape[3] if is_depthwise else 0
        kernel = weights.shape[:2] if is_depthwise else weights.shape[1:3]
        top, _, left, _ = operation.pad
        arguments = [
            self._operand(operation.operand, zero_point),
            self.constants.name(weights),
            integer(weight_zero_point),
            count(multiplier),
            *map(braced, (kernel, operation.stride, operation.dilation, (top, left))),
            braced(operation.result.shape),
        ]
        return _call("mesh_convolution", arguments, "mesh_array_convolution(&what", function)

    def _matmul(self, operation: Operation, function: str) -> str:
        left, right = (
            self._operand(operation.operands[place], int(_known(operation.operands[place + 2])[0]))
            for place in (0, 1)
        )
        return (
            f"{INDENT}{{\n{INDENT * 2}const mesh_operand left = {left};\n"
            f"{INDENT * 2}const mesh_operand right = {right};\n"
            f"{INDENT * 2}mesh_array_product(&left, &right, {function}, boxes);\n{INDENT}}}"
        )

    def _function(self) -> str:
        boxes = [
            f"{INDENT}boxes[{place}] = mesh_slot(memory, {count(box.region)}, image)"
            f"{f' + {count(box.offset)}' if box.offset else ''};"
            for place, box in enumerate(self.boxes)
        ]
        return "\n".join(
            [
                f"static void compute_{self.index}(uint8_t *memory, uint32_t image)",
                "{",
                f"{INDENT}uint8_t *boxes[{len(self.boxes)}];",
                *boxes,
                *self.lines,
                "}",
                "",
            ]
        )


def _unless(call: str) -> list[str]:
    """Return statements that end the function where a call does not succeed."""
    return [f"{INDENT}if ({call} == 0) {{", f"{INDENT * 2}return;", f"{INDENT}}}"]


def _call(type: str, arguments: Sequence[str], call: str, function: str) -> str:
    body = ",\n".join(INDENT * 3 + argument for argument in arguments)
    return (
        f"{INDENT}{{\n{INDENT * 2}const {type} what = {{\n{body},\n{INDENT * 2}}};\n"
        f"{INDENT * 2}{call}, {function}, boxes);\n{INDENT}}}"
    )


def _store(elements: Elements, value: Value, place: Place, target: View) -> None:
    name = elements.at(value, place)
    place = tuple(
        "0u" if extent == 1 else index for extent, index in zip(value.shape, place, strict=True)
    )
    elements.say(f"mesh_store({target.address(place)}, {count(target.item_bytes)}, {name});")


def _scratch(element: ElementProgram) -> int | None:
    """Return the largest region of scratch memory: tiles are computed one after the other."""
    scratch = [
        index for index, region in enumerate(element.regions) if region.kind is RegionKind.SCRATCH
    ]
    return max(scratch, key=lambda index: element.regions[index].slot_bytes, default=None)


def _known(value: Value) -> Array:
    assert value.constant is not None, "layers have constant weights"
    return value.constant


def _corrected(operation: Operation, constants: Constants, channel: str) -> str:
    """Return the expression of the operation's result, of the sum that the accelerator gives.

    Bias and the input's zero point are added in 32 bits, wrapping; what is 48 bits wide has room.
    """
    if not isinstance(operation, Windowed):
        return "sum"
    weights = _known(operation.weight).astype(np.int64) - int(_known(operation.weight_zp)[0])
    is_depthwise = isinstance(operation, DepthwiseConv2d)
    axes = (0, 1) if is_depthwise else (1, 2, 3)
    bias = _known(operation.bias).astype(np.int64)
    added = bias - int(_known(operation.input_zp)[0]) * weights.sum(axis=axes).reshape(-1)
    is_wide = operation.result.dtype is not DType.INT32
    held = added if is_wide else added.astype(np.int32)
    summand = Elements({}, constants, {}).row(held, channel)
    return f"sum + {summand}" if is_wide else f"mesh_wrap(sum + {summand}, {count(SUM_BITS)})"
