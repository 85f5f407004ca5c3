"""Tensors in another type of integers: 64 bits, which PyTorch counts with, and 32."""

from __future__ import annotations

from mizzen.frontends.quantized.terms import Plain, Term, Wide
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch import movement
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.narrowing import is_narrowing, is_widening


def to(call: IntCall) -> Term:
    """Return the input in another type, where that changes nothing on an NPU."""
    term = call.term(call.first)
    if isinstance(term, Wide) and is_narrowing(call.node):
        call.context.unite(call.node, call[call.first])
        return Plain(term.value)
    if isinstance(term, Plain) and is_widening(call.node):
        return Wide(term.value)
    if is_narrowing(call.node):
        raise RefusedError("it puts integers of 64 bits into 32")
    return movement.clone(call)
