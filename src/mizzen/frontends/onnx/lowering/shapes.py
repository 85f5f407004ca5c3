"""Operators that give a tensor another shape, order or number of copies: the numbers stay."""

from __future__ import annotations

from mizzen.frontends.arrangement.movement import permuted, reshape, tiled
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.quantized.terms import Term


def identity(call: OnnxCall) -> Term:
    """Return the input."""
    return call.moved(lambda value: value)


def reshaped(call: OnnxCall) -> Term:
    """Return the elements in another shape, which reading knows."""
    return call.moved(lambda value: reshape(call.b, value, call.shape))


def transpose(call: OnnxCall) -> Term:
    """Bring dimensions into another order; backwards where none is named."""
    rank = len(call.shape)
    perms = call.wholes("perm", range(rank)[::-1])
    call.need(sorted(perms) == list(range(rank)), f"it has no order of {rank} dimensions: {perms}")
    return call.moved(lambda value: permuted(call.b, value, perms))


def copied(call: OnnxCall) -> Term:
    """Copy along dimensions, new ones in front."""
    return call.moved(lambda value: tiled(call.b, value, call.shape))
