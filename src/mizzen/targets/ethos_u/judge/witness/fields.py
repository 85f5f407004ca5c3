"""Fields of feature maps and of what follows the sums, as a witness and the simulator have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.targets.ethos_u.judge.sim.memory import pieces
from mizzen.targets.ethos_u.judge.sim.operations import (
    FIRST_CHAIN,
    Clip,
    FeatureMap,
    Format,
    Kernel,
    Output,
    Tiling,
    Upscale,
)
from mizzen.targets.ethos_u.judge.sim.rounding import DOUBLING_BITS
from mizzen.targets.ethos_u.judge.witness.machines import (
    WIDE_BYTES,
    Machine,
    rounding_of,
    type_of,
)
from mizzen.targets.ethos_u.judge.witness.witness import (
    SaidKernel,
    SaidMap,
    SaidOperation,
    SaidPlace,
    SaidScale,
    Shape,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout, UpscaleMode
from mizzen.targets.ethos_u.machine.program import Program


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field, with what the witness says and what was read."""

    name: str
    said: Any
    read: Any


Fields = Iterator[Field]

UPSCALINGS = {
    UpscaleMode.NONE: Upscale.NONE,
    UpscaleMode.NEAREST: Upscale.NEAREST,
    UpscaleMode.ZEROS: Upscale.ZEROS,
}
FORMATS = {Layout.NHWC: Format.NHWC, Layout.NHCWB16: Format.NHCWB16}


def of_input(name: str, said: SaidMap, shape: Shape, read: FeatureMap, program: Program) -> Fields:
    """Compare an input.

    shape  what of it the operation reads: from its first element on
    """
    wide = said.dtype.itemsize >= WIDE_BYTES
    yield Field(f"{name} zero point", 0 if wide else said.zero_point, read.zero_point)
    yield from of_map(name, said, shape, read, program)


def of_map(name: str, said: SaidMap, shape: Shape, read: FeatureMap, program: Program) -> Fields:
    """Compare shape, type and place of a map, of a constant its elements."""
    inside = all(size <= most for size, most in zip(shape, said.shape, strict=True))
    yield Field(f"{name} extent", True, inside)
    yield Field(f"{name} shape", shape, read.shape)
    yield Field(f"{name} type", type_of(said.dtype), read.dtype)
    yield Field(f"{name} tiling", Tiling.QUAD, read.tiling)
    if said.link is not None:
        yield Field(f"{name} chain buffer", FIRST_CHAIN - said.link, read.region)
    elif said.place is not None:
        yield from _of_place(name, said.place, read)
    elif said.constant is not None and shape == read.shape and inside:
        height, width, depth = shape
        wanted = said.constant[:height, :width, :depth].astype(type_of(said.dtype))
        yield Field(f"{name} elements", wanted, elements(program, read))


def _of_place(name: str, said: SaidPlace, read: FeatureMap) -> Fields:
    """Compare what of a place means something for the map's size."""
    height, width, _ = read.shape
    split = (
        min(size, most) for size, most in zip(said.split, (height, height, width), strict=True)
    )
    height_0, height_1, width_0 = split
    is_split = width_0 < width
    used = (True, is_split, height_0 < height, is_split and height_1 < height)
    yield Field(f"{name} region", said.region, read.region)
    yield Field(f"{name} layout", FORMATS[said.layout], read.format)
    for tile, is_used in enumerate(used):
        if is_used:
            yield Field(f"{name} base {tile}", said.bases[tile], read.bases[tile])
    yield Field(f"{name} rows of tile 0", height_0, min(read.height_0, height))
    yield Field(f"{name} columns of tile 0", width_0, min(read.width_0, width))
    if is_split:
        yield Field(f"{name} rows of tile 1", height_1, min(read.height_1, height))
    stride_y, stride_x, stride_c = said.strides
    yield Field(f"{name} stride of rows", stride_y, read.stride_y)
    if said.layout is Layout.NHWC:
        yield Field(f"{name} stride of columns", stride_x, read.stride_x)
    else:
        yield Field(f"{name} stride of bricks", stride_c, read.stride_c)


def elements(program: Program, fm: FeatureMap) -> np.ndarray[Any, Any] | None:
    """Return the elements ``[H, W, C]`` of a map among constants; None where it is none."""
    data = program.constants.get(fm.region)
    if data is None:
        return None
    array = np.empty(fm.shape, fm.dtype)
    for piece in pieces(fm):
        cells = np.ndarray(piece.counts, f"V{piece.cell_bytes}", data.data, piece.offset,
                           piece.strides)  # fmt: skip
        part = array[piece.ys, piece.xs, piece.cs]
        bricks = cells.shape[2]
        flat = np.frombuffer(cells.tobytes(), fm.dtype)
        part[...] = flat.reshape(*cells.shape[:2], bricks * (part.shape[2] // bricks))
    return array


def of_kernel(said: SaidKernel, read: Kernel) -> Fields:
    """Compare each number of a window."""
    for name in SaidKernel.__dataclass_fields__:
        yield Field(f"kernel {name}".replace("_", " "), getattr(said, name), getattr(read, name))


def read_by_window(said: SaidMap, kernel: SaidKernel, ofm: Shape, upscale: UpscaleMode) -> Shape:
    """Return the height and width that windows reach without padding, with the input's depth."""
    height = (ofm[0] - 1) * kernel.stride_y + (kernel.height - 1) * kernel.dilation_y + 1
    width = (ofm[1] - 1) * kernel.stride_x + (kernel.width - 1) * kernel.dilation_x + 1
    height -= kernel.pad_top + kernel.pad_bottom
    width -= kernel.pad_left + kernel.pad_right
    factor = 1 if upscale is UpscaleMode.NONE else 2
    return -(-height // factor), -(-width // factor), said.shape[2]


def of_output(
    said: SaidOperation, scale: SaidScale | None, read: Output, program: Program, machine: Machine
) -> Fields:
    """Compare where results go and how they get there; all but the table's entries.

    scale  of all results alike; None where each channel has its own, or none at all
    """
    ofm, activation = said.ofm, said.activation
    yield from of_map("ofm", ofm, ofm.shape, read.fm, program)
    wanted = None if scale is None else (scale.multiplier, scale.shift)
    yield Field("scale", wanted, read.scale)
    yield Field("rounding", rounding_of(said.rounding), read.rounding)
    order = said.order.axes, said.order.reversed, DOUBLING_BITS
    yield Field("order of results", order, (read.axes, read.reversed, read.doubling_bit))
    yield from _of_clip(machine.clip(ofm, activation), read.activation.clip)
    yield Field("function", machine.function(ofm, activation), read.activation.function)


def _of_clip(said: Clip | None, read: Clip | None) -> Fields:
    types = (None if clip is None else clip.dtype for clip in (said, read))
    yield Field("clipping", *types)
    if said is not None and read is not None:
        yield Field("ofm zero point", said.zero_point, read.zero_point)
        yield Field("lower bound", said.low, read.low)
        yield Field("upper bound", said.high, read.high)
        yield Field("wrapping", said.wraps, read.wraps)
