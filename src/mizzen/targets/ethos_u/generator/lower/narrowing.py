"""CAST of whole numbers to a narrower type, which keeps the low bits: a copy of the low bytes.

Results of operations saturate, so that nothing else keeps them. Bytes of 32 bits lie in the order
of their weight, and a map may be made of every so manieth of a tensor's bytes: one channel each.
"""

from __future__ import annotations

from dataclasses import replace

from mizzen.graph import DType, Operation
from mizzen.ops.type_conversion import Cast
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, type_of
from mizzen.targets.ethos_u.generator.lower.finish import WIDE, finish_of
from mizzen.targets.ethos_u.generator.lower.planning import Site, input_zero
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View, planes
from mizzen.targets.ethos_u.generator.operations import Kernel, Pooling
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode

NARROW = {DType.INT32: (DType.INT16, DType.INT8), DType.INT16: (DType.INT8,)}
"""Narrower types, by type."""


def narrows(step: Operation) -> bool:
    """Whether an operation keeps the low bits of whole numbers."""
    return isinstance(step, Cast) and step.result.dtype in NARROW.get(step.input.dtype, ())


def narrowed(site: Site) -> Node:
    """Return the node that reads the low bytes of the root from memory, and does what follows."""
    cast, *steps = site.steps
    finish = finish_of(steps, cast.result, scales=True)
    need(finish.dtype not in WIDE, "it converts to a narrower type and back")
    scale, zero = finish.scale, input_zero(replace(site, steps=tuple(steps)))

    def write(emitter: Emitter, target: View) -> None:
        source = emitter.read(site.root)
        for one, made in planes(_in_pixels(source), _in_pixels(target)):
            emitter.operations.append(
                Pooling(
                    site.origin,
                    PoolingMode.AVERAGE,
                    replace(emitter.low(one, type_of(cast.result.dtype)), zero_point=zero),
                    emitter.map(made, finish.zero_point),
                    Kernel(),
                    scale,
                    finish.activation,
                    rounding=finish.rounding,
                )
            )

    return site.node((site.root,), write, site.steps)


def _in_pixels(view: View) -> View:
    """Return a view in which each element is a pixel, whatever its bytes."""
    return replace(view, shape=(*view.shape, 1), strides=(*view.strides, 1))
