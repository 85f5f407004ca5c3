"""Small programs from commands, for tests of single passes.

Everything is for the smallest variant: 8 banks of SRAM of 57344 bytes each. A pass reads its input
from buffer 1 and writes buffer 2, unless a test says otherwise.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.commands import encode
from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    BlockConfigRecord,
    Command,
    DataTypeCode,
    Format,
    Location,
    MceOperation,
    McePle,
    MceRecord,
    PleOnly,
    PleOperation,
    PleRecord,
    Strategy,
    TensorRecord,
    Upsample,
    UpsampleEdge,
)
from mizzen.targets.ethos_n.config import VARIANTS, capabilities_of
from mizzen.targets.ethos_n.program import (
    BufferInfo,
    BufferKind,
    Container,
    Program,
    Version,
    program_of,
)
from mizzen.targets.ethos_n.sim import Simulator
from mizzen.targets.ethos_n.weights.weight_encoding import EncodedWeights
from mizzen.targets.ethos_n.weights.weight_encoding import encode as encode_weights
from mizzen.targets.ethos_n.weights.weight_format import WeightLayout
from mizzen.targets.ethos_n.weights.weight_streams import OutputScale

Array = npt.NDArray[Any]
Extents = tuple[int, int, int]

HARDWARE = capabilities_of(VARIANTS["ethos-n78-1tops-2ple"])
BANKS = HARDWARE.srams
INPUT, OUTPUT = 1, 2
STREAM, WEIGHTS, METADATA = 0, 3, 4
"""The ids of buffers; further ones count from `FURTHER`."""
FURTHER = 5
TYPES = {np.dtype(np.uint8): DataTypeCode.U8, np.dtype(np.int8): DataTypeCode.S8}


def rounded(extents: Extents) -> Extents:
    """Whole brick groups, over all banks."""
    height, width, depth = extents
    return -(-height // 8) * 8, -(-width // 8) * 8, -(-depth // BANKS) * BANKS


def tensor(extents: Extents, buffer: int, sram: int, **changes: Any) -> TensorRecord:
    """A tensor in one stripe, U8 and NHWC in DRAM unless the changes say otherwise."""
    stripe = rounded(extents)
    record = TensorRecord(
        data_type=DataTypeCode.U8,
        format=Format.NHWC,
        shape=(1, *extents),
        supertensor_shape=(1, *extents),
        supertensor_offset=(0, 0, 0, 0),
        stripe_shape=(1, *stripe),
        tile_bytes=math.prod(stripe),
        dram_buffer_id=buffer,
        sram_offset_bytes=sram,
        zero_point=0,
        location=Location.DRAM,
    )
    return replace(record, **changes)


NO_TENSOR = tensor((0, 0, 0), 0, 0, format=Format.NHWCB_COMPRESSED)
SRAM_INPUT, SRAM_INPUT_1, SRAM_OUTPUT, SRAM_WEIGHTS = 4096, 16384, 28672, 40960


def source(extents: Extents, **changes: Any) -> TensorRecord:
    """The input of a pass."""
    return tensor(extents, INPUT, SRAM_INPUT, **changes)


def target(extents: Extents, **changes: Any) -> TensorRecord:
    """The output of a pass."""
    return tensor(extents, OUTPUT, SRAM_OUTPUT, **changes)


def ple_only(
    operation: PleOperation,
    inputs: Sequence[TensorRecord],
    output: TensorRecord,
    *constants: int,
) -> PleOnly:
    """A pass of the programmable layer engine alone; constants are multipliers and shifts."""
    first, second = [*inputs, NO_TENSOR][:2]
    ple = PleRecord(0, 0, operation, *constants)
    return PleOnly(len(inputs), first, second, output, Strategy.STRATEGY_X, ple)


@dataclass(frozen=True)
class Kernel:
    """Weights of a pass less their zero point, [H, W, I, O], or [H, W, C, 1] if depthwise."""

    weights: Array
    bias: Array
    multiplier: int
    shift: int

    @classmethod
    def identity(cls, channels: int) -> Kernel:
        """A depthwise kernel that changes nothing: 2 times 1/2."""
        weights = np.full((1, 1, channels, 1), 2)
        return cls(weights, np.zeros(channels, np.int64), 1 << 15, 16)


def mce_ple(
    kernel: Kernel,
    data: TensorRecord,
    made: Extents,
    output: TensorRecord,
    ple: PleRecord | None = None,
    **mce: Any,
) -> McePle:
    """A pass of both engines: `made` are the extents that go from one to the other."""
    shape: tuple[int, int, int, int] = (*kernel.weights.shape,)  # pyright: ignore[reportAssignmentType] NumPy does not say how many
    is_depthwise = shape[3] == 1 and shape[2] == made[2]
    is_signed = output.data_type is DataTypeCode.S8
    record = MceRecord(
        stride_x=1,
        stride_y=1,
        pad_top=0,
        pad_left=0,
        uninterleaved_input_shape=data.shape,
        output_shape=(1, *made),
        output_stripe_shape=(1, *rounded(made)),
        output_zero_point=output.zero_point,
        upsample=Upsample.OFF,
        upsample_edge_row=UpsampleEdge.GENERATE,
        upsample_edge_column=UpsampleEdge.GENERATE,
        operation=MceOperation.DEPTHWISE_CONVOLUTION if is_depthwise else MceOperation.CONVOLUTION,
        algorithm=Algorithm.DIRECT,
        activation_min=-128 if is_signed else 0,
        activation_max=127 if is_signed else 255,
    )
    record = replace(record, **mce)
    inputs, outputs = data.shape[3], -(-shape[3] // BANKS) * BANKS
    if is_depthwise:
        inputs, outputs = -(-inputs // BANKS) * BANKS, 1
    weights = TensorRecord(
        data_type=DataTypeCode.U8,
        format=Format.WEIGHT_STREAM,
        shape=shape,
        supertensor_shape=shape,
        supertensor_offset=(0, 0, 0, 0),
        stripe_shape=(shape[0], shape[1], inputs, outputs),
        tile_bytes=8 * 14336,
        dram_buffer_id=WEIGHTS,
        sram_offset_bytes=SRAM_WEIGHTS,
        zero_point=0,
        location=Location.DRAM,
    )
    engine = ple or PleRecord(0, 0, PleOperation.PASSTHROUGH)
    blocks = BlockConfigRecord(8, 8)
    return McePle(data, weights, METADATA, output, Strategy.STRATEGY_3, blocks, record, engine)


def encoded(kernel: Kernel, command: McePle) -> EncodedWeights:
    """The weight stream of a pass."""
    layout = WeightLayout.of(command)
    zero_point = command.mce.output_zero_point & 0xFF
    scale = OutputScale((kernel.multiplier,), (kernel.shift,), zero_point)
    return encode_weights(
        kernel.weights.astype(np.int16),
        layout,
        zero_point=0,
        bias=kernel.bias,
        scale=scale,
        capabilities=HARDWARE,
    )


Table = dict[int, tuple[BufferKind, int]]
"""Kind and bytes of buffers by id."""


def table(inputs: Sequence[int], output: int) -> Table:
    """Input buffers (1, then the further ones) and the output buffer (2) of such sizes."""
    ids = [INPUT, *range(FURTHER, FURTHER + len(inputs) - 1)]
    found = {buffer: (BufferKind.INPUT, size) for buffer, size in zip(ids, inputs, strict=True)}
    return found | {OUTPUT: (BufferKind.OUTPUT, output)}


def program(
    commands: Sequence[Command], buffers: Table, kernel: EncodedWeights | None = None
) -> Program:
    """Put commands, buffers and one kernel's weights into a container, and read it."""
    stream = encode(commands)
    data = b"" if kernel is None else kernel.data
    places = () if kernel is None else kernel.stripes
    metadata = b"".join(struct.pack("<2I", place.offset, place.size) for place in places)
    start = -(-len(stream) // 64) * 64
    lists: dict[BufferKind, list[BufferInfo]] = {kind: [] for kind in BufferKind}
    for buffer, (kind, size) in buffers.items():
        offset = sum(-(-info.size // 64) * 64 for info in lists[kind])
        lists[kind].append(BufferInfo(buffer, offset, size))
    lists[BufferKind.CONSTANT_DMA].append(BufferInfo(WEIGHTS, 0, len(data)))
    lists[BufferKind.CONSTANT_CONTROL_UNIT] += [
        BufferInfo(STREAM, 0, len(stream)),
        BufferInfo(METADATA, start, len(metadata)),
    ]
    return program_of(
        Container(
            Version.V1_0,
            data,
            stream.ljust(start, b"\0") + metadata,
            *(tuple(lists[kind]) for kind in BufferKind),
        ),
        HARDWARE,
    )


def run(made: Program, *inputs: Array) -> Array:
    """Execute for a batch and give the first output's bytes."""
    return Simulator(made).run(inputs, len(inputs[0])).outputs[0]


def run_mce(kernel: Kernel, command: McePle, values: Array) -> Array:
    """Execute a pass of both engines for `[n, H, W, C]`; gives `[n, H, W, C]`."""
    sizes = math.prod(command.input.shape), math.prod(command.output.shape)
    made = program([command], table([sizes[0]], sizes[1]), encoded(kernel, command))
    dtype = np.int8 if command.output.data_type is DataTypeCode.S8 else np.uint8
    return run(made, values).view(dtype).reshape(-1, *command.output.shape[1:])
