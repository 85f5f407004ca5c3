"""Streams and scale records of U85, against the simulator's readers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError, Origin
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Blob,
    Box,
    ChannelScales,
    Convolution,
    Kernel,
    Map,
    is_sparse,
)
from mizzen.targets.ethos_u.generator.shared_buffer import microblock_of
from mizzen.targets.ethos_u.generator.weights import StreamOrderU85, encode, fast_bits
from mizzen.targets.ethos_u.generator.weights.fast import entry_bits, write_fast
from mizzen.targets.ethos_u.judge.codec.decoding import decode
from mizzen.targets.ethos_u.judge.sim import fast_weights, scales
from mizzen.targets.ethos_u.judge.sim.weights_u85 import LayoutU85, positions
from mizzen.targets.ethos_u.machine.commands_values import AccFormat
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, Accelerator, Arch

U85 = {name: row for name, row in ACCELERATORS.items() if row.arch is Arch.U85}
MICROBLOCKS = {128: (8, 16), 256: (8, 16), 512: (16,), 1024: (16, 32), 2048: (16, 64)}


@st.composite
def orders(draw: st.DrawFn) -> tuple[StreamOrderU85, ...]:
    """Draw the orders of all streams of an operation; one if it is fast."""
    row = draw(st.sampled_from([*U85.values()]))
    depthwise = draw(st.booleans())
    part_kernel = not depthwise and draw(st.booleans())
    fast = not depthwise and draw(st.booleans())
    microblock = draw(st.sampled_from(MICROBLOCKS[row.macs]))
    channels = draw(st.integers(1, 100))
    inputs = draw(st.sampled_from([1, 3, 8, 16, 20, 33, 64, 70, 130]))
    return tuple(
        StreamOrderU85(
            (channels, *kernel, 1 if depthwise else inputs),
            *steps,
            block_depth,
            microblock,
            ifm_bits,
            row.macs,
            row.weight_streams,
            stream,
            depthwise,
            part_kernel,
            sparse,
            fast,
        )
        for kernel in [draw(st.tuples(st.integers(1, 10), st.integers(1, 10)))]
        for steps in [
            (
                draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
                draw(st.tuples(st.integers(1, 2), st.integers(1, 2))),
            )
        ]
        for block_depth in [microblock * draw(st.integers(1, 4))]
        for ifm_bits in [draw(st.sampled_from([8, 16] if part_kernel else [8, 16, 32]))]
        for sparse in [not depthwise and draw(st.booleans())]
        for stream in range(1 if fast else row.weight_streams)
    )


def layout_of(order: StreamOrderU85) -> LayoutU85:
    channels, height, width, depth = order.shape
    return LayoutU85(
        ofm_depth=channels,
        ifm_depth=channels if order.depthwise else depth,
        kernel_height=height,
        kernel_width=width,
        stride_y=order.stride[0],
        stride_x=order.stride[1],
        dilation_y=order.dilation[0],
        dilation_x=order.dilation[1],
        ofm_block_depth=order.block_depth,
        ofm_ublock_depth=order.microblock,
        ifm_bits=order.ifm_bits,
        macs=order.macs,
        streams=order.streams,
        depthwise=order.depthwise,
        part_kernel=order.part_kernel,
        sparse=order.sparse,
        is_fast=order.fast,
    )


@settings(max_examples=300, deadline=None)
@given(orders())
def test_the_order_is_that_in_which_the_simulator_reads(each: tuple[StreamOrderU85, ...]) -> None:
    read = positions(layout_of(each[0]))
    assert len(read) == len(each)
    for order, places in zip(each, read, strict=True):
        assert np.array_equal(order.places, places)


def convolution(
    weights: np.ndarray, bits: int = 8, kernel: Kernel | None = None, depthwise: bool = False
) -> Convolution:
    channels, height, width, depth = weights.shape
    ifm = Map(Box(0, (height, width, channels if depthwise else depth)), np.dtype(f"int{bits}"))
    wide = bits == 16
    generator = np.random.default_rng(channels)
    biases, multipliers = (47, 15) if wide else (31, 31)
    return Convolution(
        Origin(),
        ifm,
        Map(Box(1, (6, 5, channels)), np.dtype(f"int{bits}")),
        kernel or Kernel(height, width),
        weights.astype(np.int16),
        ChannelScales(
            generator.integers(-(1 << biases), 1 << biases, channels),
            generator.integers(0, 1 << multipliers, channels),
            generator.integers(0, 64, channels),
        ),
        Activation(-128, 127),
        depthwise,
        accumulators=AccFormat.I40 if wide else AccFormat.I32,
    )


def held(
    blob: Blob, operation: Convolution, depth: int, part_kernel: bool, row: Accelerator
) -> tuple[np.ndarray, scales.ChannelScales, int]:
    """Return weights, scales and the number of records that the simulator reads from a blob."""
    kernel, (channels, height, width, inputs) = operation.kernel, operation.weights.shape
    wide = operation.accumulators is AccFormat.I40
    layout = LayoutU85(
        ofm_depth=channels,
        ifm_depth=channels if operation.depthwise else inputs,
        kernel_height=height,
        kernel_width=width,
        stride_y=kernel.stride_y,
        stride_x=kernel.stride_x,
        dilation_y=kernel.dilation_y,
        dilation_x=kernel.dilation_x,
        ofm_block_depth=depth,
        ofm_ublock_depth=microblock_of(operation, row)[2],
        ifm_bits=8 * operation.ifm.dtype.itemsize,
        macs=row.macs,
        streams=row.weight_streams,
        depthwise=operation.depthwise,
        part_kernel=part_kernel,
        sparse=blob.sparse,
        is_fast=blob.fast,
    )
    data = np.frombuffer(blob.data, np.uint8)
    streams = [
        data[part.weights_offset_bytes :][: part.weights_bytes].tobytes() for part in blob.cores
    ]
    first = blob.cores[0]
    records = data[first.scales_offset_bytes :][: first.scales_bytes]
    format_ = scales.RECORDS_U85[48 if wide else 32]
    return (
        layout.arrange([*map(fast_weights.decode, streams)] if blob.fast else decode(streams)),
        scales.decode(records, channels, format_),
        len(records) // scales.RECORD_BYTES,
    )


@pytest.mark.parametrize("accelerator", U85)
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(
    ("shape", "kernel", "depthwise", "part_kernel"),
    [
        ((37, 3, 2, 20), None, False, False),
        ((37, 3, 2, 20), Kernel(3, 2, stride_y=2, dilation_x=2), False, True),
        ((70, 1, 1, 300), None, False, False),
        ((37, 5, 5, 1), Kernel(5, 5, stride_x=2), True, False),
    ],
)
def test_a_blob_holds_what_went_in(
    accelerator: str,
    bits: int,
    shape: tuple[int, ...],
    kernel: Kernel | None,
    depthwise: bool,
    part_kernel: bool,
) -> None:
    row = U85[accelerator]
    weights = np.random.default_rng(1).integers(-128, 128, shape)
    operation = convolution(weights, bits, kernel, depthwise)
    depth = 64
    blob = encode(operation, (0, shape[0]), depth, part_kernel, row)
    assert not blob.sparse
    assert len(blob.cores) == row.weight_streams
    assert not any(part.scales_bytes for part in blob.cores[1:])
    for part in blob.cores:
        assert part.weights_offset_bytes % 16 == part.weights_bytes % 16 == 0
        assert part.scales_offset_bytes % 16 == part.scales_bytes % 16 == 0
    read, records, count = held(blob, operation, depth, part_kernel, row)
    assert np.array_equal(read, weights)
    assert np.array_equal(records.bias, operation.scales.biases)
    assert np.array_equal(records.multiplier, operation.scales.multipliers)
    assert np.array_equal(records.shift, operation.scales.shifts)
    granule = max(16, microblock_of(operation, row)[2])
    assert count >= -(-shape[0] // granule) * granule


def test_some_channels_are_as_an_operation_of_their_own() -> None:
    row = U85["ethos-u85-1024"]
    weights = np.random.default_rng(2).integers(-128, 128, (64, 1, 1, 40))
    some, whole = convolution(weights[32:]), convolution(weights)
    some.scales.biases[:] = whole.scales.biases[32:]
    some.scales.multipliers[:] = whole.scales.multipliers[32:]
    some.scales.shifts[:] = whole.scales.shifts[32:]
    assert microblock_of(some, row) == microblock_of(whole, row)
    part = encode(whole, (32, 64), 32, False, row)
    assert part == encode(some, (0, 32), 32, False, row)


@pytest.mark.parametrize("accelerator", U85)
@pytest.mark.parametrize("part_kernel", [False, True])
@pytest.mark.parametrize("different", [3, 16, 200])
def test_fast_streams_hold_what_went_in(
    accelerator: str, part_kernel: bool, different: int
) -> None:
    row = U85[accelerator]
    generator = np.random.default_rng(different)
    values = np.append(generator.integers(-200, 50, different - 1), 0)
    weights = generator.choice(values, (70, 3, 2, 40))
    operation = convolution(weights)
    blob = encode(operation, (0, 70), 64, part_kernel, row, fast=True)
    assert blob.fast
    assert len(blob.cores) == 1
    assert fast_bits(operation, row) == {3: 2, 16: 4, 200: 8}[different]
    read, records, _ = held(blob, operation, 64, part_kernel, row)
    assert np.array_equal(read, weights)
    assert np.array_equal(records.bias, operation.scales.biases)


@settings(max_examples=100, deadline=None)
@given(st.integers(-255, 255), st.integers(0, 510), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_what_has_a_fast_stream_decodes(low: int, span: int, count: int, seed: int) -> None:
    high = min(low + span, 255)
    values = np.random.default_rng(seed).integers(low, high + 1, count).astype(np.int16)
    bits = entry_bits(values)
    present = {*values.tolist(), 0}
    assert (bits is None) == (len(present) > 16 and max(present) - min(present) > 255)
    if bits is not None:
        stream = write_fast(values)
        assert len(stream) % 16 == 0
        assert len(stream) - 32 - -(-count * bits // 8) < 16
        decoded = fast_weights.decode(stream)
        assert np.array_equal(decoded[:count], values)
        assert not decoded[count:].any()


def half_zero(shape: tuple[int, ...]) -> np.ndarray:
    """Return weights of which two of four in a row, along the inputs, are zero."""
    generator = np.random.default_rng(3)
    weights = generator.integers(1, 100, shape)
    order = generator.random((*shape[:-1], -(-shape[-1] // 4), 4)).argsort(axis=-1)
    kept = (order < 2).reshape(*shape[:-1], -1)[..., : shape[-1]]
    return weights * kept


@pytest.mark.parametrize("accelerator", U85)
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("part_kernel", [False, True])
@pytest.mark.parametrize("inputs", [2, 16, 150])
def test_sparse_streams_hold_what_went_in(
    accelerator: str, bits: int, part_kernel: bool, inputs: int
) -> None:
    row = U85[accelerator]
    weights = half_zero((37, 3, 2, inputs))
    operation = convolution(weights, bits)
    blob = encode(operation, (0, 37), 64, part_kernel, row)
    assert blob.sparse
    read, _, _ = held(blob, operation, 64, part_kernel, row)
    assert np.array_equal(read, weights)


def test_sparse_is_what_has_two_of_four_inputs_on_u85() -> None:
    weights = half_zero((8, 1, 1, 16))
    assert is_sparse(convolution(weights), Arch.U85)
    assert not is_sparse(convolution(weights), Arch.U65)
    weights[7, 0, 0, 12:15] = 1
    assert not is_sparse(convolution(weights), Arch.U85)


def test_few_weights_are_multiplied_at_once_in_any_way() -> None:
    """A first layer of one number would only get a longer stream."""
    weights = np.ones((16, 1, 1, 1), np.int16)
    assert not is_sparse(convolution(weights), Arch.U85)
    assert is_sparse(convolution(np.ones((16, 3, 3, 1), np.int16)), Arch.U85)


def test_what_has_no_fast_stream_is_refused() -> None:
    row = U85["ethos-u85-256"]
    spread = np.arange(-255, 255).reshape(10, 1, 1, 51)
    for operation in (
        convolution(spread),
        convolution(half_zero((8, 1, 1, 16))),
        convolution(np.ones((8, 3, 3, 1)), depthwise=True),
    ):
        with pytest.raises(MizzenError, match=r"E283.*fast stream"):
            encode(operation, (0, 8), 16, False, row, fast=True)


def refused(operation: Convolution, accelerator: str = "ethos-u85-256") -> str:
    with pytest.raises(MizzenError) as caught:
        encode(operation, (0, len(operation.weights)), 16, False, U85[accelerator])
    return str(caught.value)


@pytest.mark.parametrize(
    ("bits", "name", "value", "says"),
    [
        (8, "biases", 1 << 31, "bias of a channel must be in -2147483648..2147483647, not"),
        (8, "multipliers", 1 << 31, "multiplier of a channel must be in 0..2147483647, not"),
        (8, "multipliers", -1, "multiplier of a channel must be in 0..2147483647, not -1"),
        (8, "shifts", 64, "shift of a channel must be in 0..63, not 64"),
        (16, "biases", 1 << 47, "bias of a channel must be in -140737488355328..140737488355327"),
        (16, "multipliers", 1 << 15, "multiplier of a channel must be in 0..32767, not 32768"),
    ],
)
def test_what_a_record_cannot_hold_is_refused(bits: int, name: str, value: int, says: str) -> None:
    operation = convolution(np.ones((4, 1, 1, 8)), bits)
    getattr(operation.scales, name)[1] = value
    assert "E281" in refused(operation)
    assert says in refused(operation)
    getattr(operation.scales, name)[1] = 1
    assert encode(operation, (0, 4), 16, False, U85["ethos-u85-256"]).data


def test_blocks_are_whole_microblocks() -> None:
    operation = convolution(np.ones((100, 1, 1, 8)))
    with pytest.raises(MizzenError, match=r"E284.*must be a multiple of \d+, not 20"):
        encode(operation, (0, 100), 20, False, U85["ethos-u85-512"])
