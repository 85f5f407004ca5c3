"""Weights of decoded streams, brought into place by the simulator's reader."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.targets.ethos_u.generator.weights import StreamOrder
from mizzen.targets.ethos_u.judge.sim.weights import SplitLayout, WeightOrder, Weights


def weights_of(streams: Sequence[Weights], orders: Sequence[StreamOrder]) -> Weights:
    """Return the weights [O, kernel height, kernel width, I] of a decoded stream for each core."""
    used = [pair for pair in zip(streams, orders, strict=True) if pair[1].shape[0]]
    layout = SplitLayout(tuple(_judges(order) for _, order in used))
    return layout.arrange([stream for stream, _ in used])


def _judges(order: StreamOrder) -> WeightOrder:
    channels, height, width, depth = order.shape
    return WeightOrder(
        ofm_depth=channels,
        ifm_depth=depth,
        kernel_height=height,
        kernel_width=width,
        dilation_y=order.dilation[0],
        dilation_x=order.dilation[1],
        ofm_block_depth=order.block_depth,
        ofm_ublock_depth=order.microblock,
        ifm_bits=order.ifm_bits,
        depthwise=order.depthwise,
        part_kernel=order.part_kernel,
    )
