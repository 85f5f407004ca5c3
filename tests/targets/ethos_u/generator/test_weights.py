"""Blobs and the order of weights, against Vela's codec and the simulator's readers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError, Origin
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    ChannelScales,
    Convolution,
    Kernel,
    Map,
)
from mizzen.targets.ethos_u.generator.weights import (
    StreamOrder,
    encode,
    orders_of,
)
from mizzen.targets.ethos_u.judge.codec.decoding import decode
from mizzen.targets.ethos_u.judge.sim import scales
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, Accelerator

from .stream_weights import weights_of

OURS = [name for name, row in ACCELERATORS.items() if row.shram_kib is not None]


def convolution(weights: np.ndarray, bits: int = 8, dilation: int = 1) -> Convolution:
    channels, height, width, depth = weights.shape
    ifm = Map(Box(0, (height, width, depth)), np.dtype(f"int{bits}"))
    ofm = Map(Box(1, (1, 1, channels)), np.dtype(f"int{bits}"))
    generator = np.random.default_rng(channels)
    records = ChannelScales(
        generator.integers(-(1 << 39), 1 << 39, channels),
        generator.integers(0, 1 << 32, channels),
        generator.integers(0, 64, channels),
    )
    kernel = Kernel(height, width, dilation_y=dilation, dilation_x=dilation)
    weights = weights.astype(np.int16)
    return Convolution(Origin(), ifm, ofm, kernel, weights, records, Activation(-128, 127))


@st.composite
def orders(draw: st.DrawFn) -> StreamOrder:
    depthwise = draw(st.booleans())
    sizes = [draw(st.integers(1, high)) for high in (40, 10, 10, 1 if depthwise else 70)]
    microblock = draw(st.sampled_from([4, 8]))
    return StreamOrder(
        (sizes[0], sizes[1], sizes[2], sizes[3]),
        (draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 2]))),
        block_depth=draw(st.sampled_from([8, 16, 24, 32, 12 if microblock == 4 else 40])),
        microblock=microblock,
        ifm_bits=draw(st.sampled_from([8, 16])),
        depthwise=depthwise,
        part_kernel=not depthwise and draw(st.booleans()),
    )


@settings(max_examples=150, deadline=None)
@given(orders(), st.integers(0, 2**32 - 1))
def test_the_order_is_that_of_velas_encoder(order: StreamOrder, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(-255, 256, order.shape).astype(np.int16)
    codec = pytest.importorskip("ethosu.mlw_codec", reason="Vela is not installed")
    encoded, padded = codec.reorder_encode(
        8,
        order.microblock,
        weights,
        order.block_depth,
        order.depthwise,
        order.part_kernel,
        order.ifm_bits,
        8 // order.dilation[0],
        8 // order.dilation[1],
    )
    (decoded,) = decode([bytes(encoded)])
    index = order.places
    expected = np.append(weights.ravel(), 0)[index]
    assert padded == len(index)
    assert np.array_equal(decoded[: len(index)], expected)
    assert not decoded[len(index) :].any()
    assert np.array_equal(weights_of([decoded], [order]), weights)


@pytest.mark.parametrize("accelerator", OURS)
@pytest.mark.parametrize("channels", [(0, 37), (16, 37), (36, 37)])
@pytest.mark.parametrize("part_kernel", [False, True])
def test_a_blob_holds_what_went_in(
    accelerator: str, channels: tuple[int, int], part_kernel: bool
) -> None:
    row = ACCELERATORS[accelerator]
    weights = np.random.default_rng(1).integers(-128, 128, (37, 3, 2, 20))
    operation = convolution(weights)
    blob = encode(operation, channels, 16, part_kernel, row)
    assert len(blob.cores) == row.cores
    shape = (channels[1] - channels[0], 3, 2, 20)
    each = orders_of(shape, (1, 1), 16, 8, False, part_kernel, row)
    streams: list[np.ndarray] = []
    for core, part in enumerate(blob.cores):
        assert part.weights_offset_bytes % 16 == part.weights_bytes % 16 == 0
        assert part.scales_offset_bytes % 16 == part.scales_bytes % 16 == 0
        data = blob.data[part.weights_offset_bytes :][: part.weights_bytes]
        streams += decode([data]) if data else [np.zeros(0, np.int16)]
        records = np.frombuffer(blob.data, np.uint8)[part.scales_offset_bytes :][
            : part.scales_bytes
        ]
        of_core = slice(channels[0] + core, channels[1], row.cores)
        found = scales.decode(records, each[core].shape[0])
        assert np.array_equal(found.bias, operation.scales.biases[of_core])
        assert np.array_equal(found.multiplier, operation.scales.multipliers[of_core])
        assert np.array_equal(found.shift, operation.scales.shifts[of_core])
    assert np.array_equal(weights_of(streams, each), weights[slice(*channels)])


def test_one_channel_leaves_the_second_core_without_anything() -> None:
    operation = convolution(np.ones((5, 1, 1, 8)))
    blob = encode(operation, (4, 5), 16, False, ACCELERATORS["ethos-u65-512"])
    assert blob.cores[1].scales_bytes == blob.cores[1].weights_bytes == 0


U55 = ACCELERATORS["ethos-u55-128"]


def refused(operation: Convolution, channels: tuple[int, int]) -> str:
    with pytest.raises(MizzenError) as caught:
        encode(operation, channels, 16, False, U55)
    return str(caught.value)


def test_what_a_blob_cannot_hold_is_refused() -> None:
    operation = convolution(np.full((4, 1, 1, 8), 256))
    assert "E280" in refused(operation, (0, 4))
    assert "one is of magnitude 256" in refused(operation, (0, 4))
    fine = convolution(np.ones((4, 1, 1, 8)))
    assert "E282" in refused(fine, (2, 5))
    fine.scales.shifts[1] = 64
    assert "the shift of a channel must be in 0..63, not 64" in refused(fine, (0, 4))


def one_order(accelerator: Accelerator = U55) -> tuple[StreamOrder, ...]:
    return orders_of((4, 1, 1, 8), (1, 1), 8, 8, False, False, accelerator)


def test_blocks_are_whole_microblocks() -> None:
    with pytest.raises(MizzenError, match=r"E284.*must be a multiple of 16, not 8"):
        orders_of((9, 1, 1, 8), (1, 1), 8, 8, False, False, ACCELERATORS["ethos-u65-512"])
    assert one_order(ACCELERATORS["ethos-u65-512"])[1].block_depth == 4
