"""Integers of 32 bits that are not negative as such of 64: their words, and zeros between them.

The machine has no type of 64 bits on U55 and U65; a map of every other word it has.
"""

from __future__ import annotations

from typing import Any

from mizzen.graph import DType
from mizzen.ops.control_flow import Custom
from mizzen.targets.ethos_u.generator.lower.carrying import INT32
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node
from mizzen.targets.ethos_u.generator.lower.customs import custom_rule
from mizzen.targets.ethos_u.generator.lower.finish import NARROW_RANGE
from mizzen.targets.ethos_u.generator.lower.planning import Site
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import MOST, View
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Bytes,
    Elementwise,
    Map,
    Scalar,
    Scale,
)
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode, RoundMode

WORD_BYTES, PAIR_BYTES = 4, 8


@custom_rule("tflite.CAST")
def widened(site: Site, options: dict[str, Any]) -> Node:
    """Places of 32 bits, which are not negative, as 64 bits."""
    operation = site.operation
    assert isinstance(operation, Custom)
    (source,) = operation.input_list
    need(bool(options) and site.root.dtype is DType.INT64, "no rule has a form of CAST")
    count = source.type.elements
    need(count <= MOST, f"it gives more than {MOST} integers of 64 bits")

    def write(emitter: Emitter, target: View) -> None:
        view = emitter.read(source)
        flat = view.reshaped((count,)) or emitter.copied(view, site.origin).reshaped((count,))
        made = target.reshaped((count,))
        assert flat is not None
        assert made is not None
        ifm = emitter.map(View(flat.tensor, flat.offset, (1, count, 1), (count, *flat.strides, 1)))
        stride = made.strides[0] * PAIR_BYTES
        for word, factor in enumerate((1, 0)):
            offset = made.offset * PAIR_BYTES + word * WORD_BYTES
            strides = count * stride, stride, WORD_BYTES
            emitter.operations.append(
                Elementwise(
                    site.origin,
                    ElementwiseMode.MUL,
                    ifm,
                    Scalar(factor, INT32),
                    Map(Bytes(made.tensor, (1, count, 1), offset, strides), INT32),
                    Activation(*NARROW_RANGE),
                    scale=Scale(1, 0),
                    rounding=RoundMode.NATURAL,
                )
            )

    return site.node((source,), write)
