"""The header of a program's file."""

from __future__ import annotations

from typing import Annotated, Literal

from mizzen.documents.model import Limits, Section

Index = Annotated[int, Limits(ge=0, lt=1 << 31)]
Count = Annotated[int, Limits(ge=1, lt=1 << 31)]
Bytes = Annotated[int, Limits(ge=0, lt=1 << 48)]
Number = Annotated[float, Limits(ge=0, lt=1e18)]
Rate = Annotated[float, Limits(gt=0, lt=1e18)]
Name = Annotated[str, Limits(max_length=4096)]
Extent = Annotated[int, Limits(ge=1, le=1 << 24)]
Shape = Annotated[tuple[Extent, ...], Limits(max_length=6)]
Pair = tuple[Extent, Extent]
Offset = Annotated[int, Limits(ge=-(1 << 24), le=1 << 24)]


class ArrayPlace(Section):
    """Where an array lies after the header."""

    type: str
    shape: Annotated[tuple[Index, ...], Limits(max_length=2)]
    offset: Bytes


class MacArrayPart(Section):
    """As `MacArray`."""

    rows: Count
    columns: Count
    accumulator_bits: Annotated[int, Limits(ge=8, le=64)]
    overflow: Literal["wrap", "saturate"]
    depthwise_columns: Count


class CorePart(Section):
    """As `CoreCosts`."""

    pointwise: Number
    partial_sum: Number
    pooling: Number
    movement: Number
    general: Number
    multiply: Number
    task: Number


class KindPart(Section):
    """As `ElementKind`."""

    name: Name
    clock_hz: Rate
    code_bytes: Bytes
    stack_bytes: Bytes
    data_bytes: Bytes
    array: MacArrayPart | None
    core: CorePart
    npu: Name | None


class DramPart(Section):
    """As `Dram`."""

    router: Index
    size_bytes: Bytes
    bytes_per_s: Rate


class HostPart(Section):
    """As `Host`."""

    router: Index
    bytes_per_s: Rate


class EnergyPart(Section):
    """As `Energy`."""

    mac_pj: Number
    memory_byte_pj: Number
    router_byte_pj: Number
    chip_link_byte_pj: Number
    dram_byte_pj: Number
    idle_w: Number
    source: Name


class MachinePart(Section):
    """As `Machine`, whose tables are arrays called ``machine.`` and the field."""

    name: Name
    description: Name
    kinds: Annotated[tuple[KindPart, ...], Limits(min_length=1, max_length=1024)]
    port_bytes_per_s: Rate
    arrangement: Literal["single", "grid", "hex-torus"]
    chip_columns: Count
    chip_rows: Count
    drams: tuple[DramPart, ...]
    host: HostPart | None
    energy: EnergyPart
    digest: Name


class TensorPart(Section):
    """As `Tensor`."""

    name: Name
    shape: Shape
    item_bytes: Annotated[int, Limits(ge=1, le=8)]


class WindowPart(Section):
    """As `Window`."""

    kernel: Pair
    stride: Pair
    dilation: Pair
    padding: tuple[
        Annotated[int, Limits(ge=0, le=1 << 24)], Annotated[int, Limits(ge=0, le=1 << 24)]
    ]


class LayerPart(Section):
    """As `Layer`; `chain` is the text of its graph without large constants."""

    name: Name
    kind: Literal[
        "convolution",
        "depthwise",
        "pooling",
        "pointwise",
        "movement",
        "matmul",
        "reduction",
        "general",
    ]
    inputs: Annotated[tuple[Index, ...], Limits(max_length=1024)]
    output: Index
    window: WindowPart | None
    input_channels: Annotated[int, Limits(ge=0, le=1 << 24)]
    weight_item_bytes: Annotated[int, Limits(ge=1, le=8)]
    channel_bytes: Bytes
    constant_bytes: Bytes
    offsets: tuple[tuple[Offset, ...], ...]
    reduced_axes: tuple[Annotated[int, Limits(ge=0, le=5)], ...]
    chain: str | None


class MovePart(Section):
    """As `Move`."""

    shape: Shape
    order: tuple[Annotated[int, Limits(ge=0, le=5)], ...] | None


class EdgePart(Section):
    """As `Edge`."""

    shape: Shape
    moves: Annotated[tuple[MovePart, ...], Limits(max_length=64)]
    scale: Rate | None
    zero_point: Annotated[int, Limits(ge=-(1 << 31), lt=1 << 31)]


class EdgesPart(Section):
    """As `Edges`."""

    inputs: tuple[EdgePart, ...]
    outputs: tuple[EdgePart, ...]


class NetworkPart(Section):
    """As `Network`."""

    name: Name
    tensors: tuple[TensorPart, ...]
    layers: tuple[LayerPart, ...]
    inputs: tuple[Index, ...]
    outputs: tuple[Index, ...]
    edges: EdgesPart | None


class StreamPart(Section):
    """A tile, as `Kernel`, and the accelerator that its stream is for; the array has its name."""

    npu: Name
    array: Name
    layer: Index
    box: Annotated[tuple[tuple[Index, Index], ...], Limits(max_length=6)]
    channels: tuple[Index, Index] | None
    adds_sums: Index
    gives_sums: bool


class Header(Section):
    """The header."""

    replicas: Annotated[int, Limits(ge=1, le=1 << 16)]
    machine: MachinePart
    network: NetworkPart
    streams: tuple[StreamPart, ...]
    arrays: dict[str, ArrayPlace]
