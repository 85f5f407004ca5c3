"""An output over an input: no block writes what a later one reads, shown by doing them in turn."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from mizzen.targets.ethos_u.generator.arrange import chained
from mizzen.targets.ethos_u.generator.occupancy import overlap
from mizzen.targets.ethos_u.generator.operations import (
    Blockwise,
    Box,
    Bytes,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Kernel,
    Pooling,
    Role,
    Sequence,
    Shape,
    views_read,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode

from .interpreter import Memory
from .sequences import Network

SAME_3X3 = Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)
KERNELS = [
    Kernel(),
    SAME_3X3,
    Kernel(3, 3, 2, 2, pad_top=1, pad_left=1),
    Kernel(5, 2, pad_top=2),
    Kernel(3, 3, dilation_y=2, pad_top=2, pad_bottom=2, pad_left=1, pad_right=1),
    Kernel(2, 2, 2, 2),
]
BLOCKS: list[Shape] = [(2, 16, 32), (4, 16, 16), (4, 8, 32), (16, 16, 32), (1, 2, 16)]
LAYOUTS = list(itertools.product(Layout, Layout))


def cases() -> list[Sequence]:
    found: list[Sequence] = []
    for kernel, depthwise in itertools.product(KERNELS, (False, True)):
        network = Network()
        source = network.tensor((13, 11, 32), Role.INPUT)
        channels = 32 if depthwise else 24
        output = network.convolution(source, channels, kernel, depthwise=depthwise)
        found.append(network.sequence((source,), (output,)))
    network = Network()
    source, other = (
        network.tensor((12, 10, 24), Role.INPUT),
        network.tensor((12, 10, 24), Role.INPUT),
    )
    found.append(network.sequence((source, other), (network.add(source, other),)))
    network = Network()
    source = network.tensor((12, 10, 24), Role.INPUT)
    found.append(network.sequence((source,), (network.pool(source, PoolingMode.MAX, Kernel()),)))
    return found + [residual(kernel, *operands) for kernel in KERNELS[:2] for operands in PLACES]


PLACES = [(0, 1), (1, 0), (0, 0)]
"""Which of two inputs a chain's convolution reads, and which its sum."""


def residual(kernel: Kernel, convolved: int, added: int) -> Sequence:
    """Return a chain of U85: a convolution of an input, and the sum of that and of an input."""
    network = Network()
    inputs = [network.tensor((12, 10, 32), Role.INPUT) for _ in range(2)]
    output = network.add(network.convolution(inputs[convolved], 32, kernel), inputs[added])
    network.as_output(output)
    return chained(network.sequence(tuple(inputs), (output,)))


def blocks_of(operation: Blockwise, block: Shape) -> list[tuple[Shape, Shape]]:
    """Return start and shape of each block, depth fastest, then width."""
    ranges = [range(0, size, step) for size, step in zip(operation.ofm.shape, block, strict=True)]
    found: list[tuple[Shape, Shape]] = []
    for y, (x, c) in itertools.product(ranges[0], itertools.product(*ranges[1:])):
        sides = zip((y, x, c), block, operation.ofm.shape, strict=True)
        height, width, depth = (min(step, size - at) for at, step, size in sides)
        found.append(((y, x, c), (height, width, depth)))
    return found


def needed(
    operation: Computation, shape: Shape, start: Shape, extent: Shape
) -> tuple[Shape, Shape]:
    """Return start and shape of what a block needs of an input."""
    if isinstance(operation, Elementwise):
        return start, extent
    assert isinstance(operation, Convolution | Pooling)
    kernel = operation.kernel
    top = start[0] * kernel.stride_y - kernel.pad_top
    left = start[1] * kernel.stride_x - kernel.pad_left
    bottom = top + (extent[0] - 1) * kernel.stride_y + kernel.dilated_height
    right = left + (extent[1] - 1) * kernel.stride_x + kernel.dilated_width
    each = isinstance(operation, Pooling) or operation.depthwise
    deep = (start[2], extent[2]) if each else (0, shape[2])
    first = max(0, top), max(0, left), deep[0]
    return first, (min(shape[0], bottom) - first[0], min(shape[1], right) - first[1], deep[1])


def clashes(
    sequence: Sequence, layouts: list[Layout], tensor: int, block: Shape, distance: int
) -> bool:
    """Whether a block reads what an earlier one wrote, the output being so far behind the input."""
    memory = Memory(
        [replace(row, layout=layout) for row, layout in zip(sequence.tensors, layouts, strict=True)]
    )
    (operation,) = sequence.operations
    assert not isinstance(operation, Copy)
    written: set[int] = set()
    for start, extent in blocks_of(operation, block):
        for link, view in views_read(operation):
            first, shape = needed(link, view.shape, start, extent)
            values = memory.places(replace(view, view=Box(view.tensor, shape, first)))
            if view.tensor == tensor and written & set((values - distance).ravel().tolist()):
                return True
        target = replace(operation.ofm, view=Box(operation.ofm.tensor, extent, start))
        written.update(memory.places(target).ravel().tolist())
    return False


@pytest.mark.parametrize("layouts", LAYOUTS, ids=str)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_no_block_reads_what_an_earlier_one_wrote(
    block: Shape, layouts: tuple[Layout, Layout]
) -> None:
    for sequence in cases():
        (operation,) = sequence.operations
        assert not isinstance(operation, Copy)
        rows = [
            layouts[1 if index in sequence.outputs else 0] for index in range(len(sequence.tensors))
        ]
        found = overlap(operation, block, 0, sequence.tensors, rows)
        assert found is not None
        reach = found.reach_bytes // 16 * 16
        for distance in (reach, reach - 160):
            assert not clashes(sequence, rows, 0, block, distance), (operation, distance)
        if found.exact_bytes is not None:
            assert not clashes(sequence, rows, 0, block, found.exact_bytes)


def test_reach_of_blocks_as_wide_and_deep_as_the_map() -> None:
    """Rows of 12 x 16 bytes: one row of the kernel frees each at once, three a row late."""
    rows = [Layout.NHWC, Layout.NHWC]
    for kernel, reach in [
        (Kernel(), 0),
        (SAME_3X3, -12 * 16),
        (Kernel(2, 2, 2, 2), 2 * 2 * 12 * 16 - 2 * 6 * 16),
    ]:
        network = Network()
        source = network.tensor((12, 12, 16), Role.INPUT)
        network.convolution(source, 16, kernel)
        (operation,) = network.operations
        assert not isinstance(operation, Copy)
        found = overlap(operation, (2, 12, 16), source, network.tensors, rows)
        assert found is not None
        assert (found.reach_bytes, found.exact_bytes) == (reach, None)


def test_channels_by_themselves_are_written_a_row_late() -> None:
    """Blocks beside each other in depth do not matter to a depthwise convolution."""
    network = Network()
    source = network.tensor((12, 12, 64), Role.INPUT)
    network.convolution(source, 64, SAME_3X3, depthwise=True)
    (operation,) = network.operations
    assert not isinstance(operation, Copy)
    for layout in Layout:
        found = overlap(operation, (6, 12, 16), source, network.tensors, [layout, layout])
        assert found is not None
        assert (found.reach_bytes, found.exact_bytes) == (-7 * 12 * 64, -12 * 64)
    found = overlap(operation, (6, 8, 16), source, network.tensors, [Layout.NHWC, Layout.NHWC])
    assert found is not None
    assert found.exact_bytes is None


def test_columns_behind_one_another_are_not_written_a_row_late() -> None:
    """With height and width exchanged, a row before the first is the last of another column."""
    network = Network()
    source = network.tensor((12, 12, 16), Role.INPUT)
    output = network.convolution(source, 16, SAME_3X3, depthwise=True)
    (operation,) = network.operations
    assert isinstance(operation, Convolution)
    shape, strides = (12, 12, 16), (16, 12 * 16, 1)
    turned = replace(
        operation,
        ifm=replace(operation.ifm, view=Bytes(source, shape, 0, strides)),
        ofm=replace(operation.ofm, view=Bytes(output, shape, 0, strides)),
    )
    found = overlap(turned, (6, 12, 16), source, network.tensors, [Layout.NHWC, Layout.NHWC])
    assert found is not None
    assert found.exact_bytes is None


@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_read_backwards_is_not_written_over(axis: int) -> None:
    """The last row is read first, so that no distance keeps the writing behind the reading."""
    network = Network()
    source = network.tensor((12, 12, 16), Role.INPUT)
    network.pool(source, PoolingMode.MAX, Kernel())
    (operation,) = network.operations
    assert isinstance(operation, Pooling)
    shape, strides = (12, 12, 16), [12 * 16, 16, 1]
    start = (shape[axis] - 1) * strides[axis]
    strides[axis] = -strides[axis]
    view = Bytes(source, shape, start, (strides[0], strides[1], strides[2]))
    turned = replace(operation, ifm=replace(operation.ifm, view=view))
    layouts = [Layout.NHWC, Layout.NHWC]
    assert overlap(turned, (6, 12, 16), source, network.tensors, layouts) is None
