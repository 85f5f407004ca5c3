"""Blocks of pixels made of channels, and channels made of blocks of pixels."""

from __future__ import annotations

from math import prod

from mizzen.frontends.arrangement.movement import permuted, reshape
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.quantized.terms import Term
from mizzen.graph import Value


def depth_to_space(call: OnnxCall) -> Term:
    """Make blocks of channels: [N,C*s*s,H,W] -> [N,C,H*s,W*s].

    A block's places come before the channels (DCR) or after them (CRD).
    """
    size, mode = call.whole("blocksize", 1), call.text("mode", "DCR")
    call.need(mode in ("DCR", "CRD"), f'its mode is "{mode}"', 'use "DCR" or "CRD"')
    batch, channels, height, width = call.shape_of(0)
    planes = batch * channels // size**2
    b = call.b

    def move(value: Value) -> Value:
        if mode == "DCR":
            value = _exchanged(call, value, size**2, channels // size**2)
        value = reshape(b, value, (planes * size, size, height, width))
        value = permuted(b, value, (0, 2, 3, 1))
        value = reshape(b, value, (planes, size, height, width * size))
        return reshape(b, permuted(b, value, (0, 2, 1, 3)), call.shape)

    return call.moved(move)


def space_to_depth(call: OnnxCall) -> Term:
    """Make channels of blocks: [N,C,H*s,W*s] -> [N,s*s*C,H,W], places of a block first."""
    size = call.whole("blocksize", 1)
    batch, channels, height, width = call.shape_of(0)
    planes, lines, columns = batch * channels, height // size, width // size
    b = call.b

    def move(value: Value) -> Value:
        value = reshape(b, value, (planes, lines, size, width))
        value = permuted(b, value, (0, 2, 1, 3))
        value = reshape(b, value, (planes * size, lines, columns, size))
        value = permuted(b, value, (0, 3, 1, 2))
        value = reshape(b, value, (batch, channels * size**2, lines, columns))
        return reshape(b, _exchanged(call, value, channels, size**2), call.shape)

    return call.moved(move)


def _exchanged(call: OnnxCall, value: Value, outer: int, inner: int) -> Value:
    """Exchange two parts of the channels, which one dimension has together."""
    batch, _, *space = value.shape
    apart = reshape(call.b, value, (batch, outer, inner, prod(space)))
    return reshape(call.b, permuted(call.b, apart, (0, 2, 1, 3)), (batch, outer * inner, *space))
