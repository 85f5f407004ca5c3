"""LOGISTIC and TANH of 16 bits: the machine has the curves that TFLite Micro's kernels compute.

Both draw lines between the same 256 points, of numbers in units of 1 / 12,288.

Ref: registers of Ethos-U55, ACTIVATION; TFLite Micro, integer_ops/logistic.h and tanh.h.
"""

from __future__ import annotations

from typing import Any

from mizzen.graph import DType
from mizzen.ops.control_flow import Custom
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, each
from mizzen.targets.ethos_u.generator.lower.customs import custom_rule
from mizzen.targets.ethos_u.generator.lower.planning import Site
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.generator.operations import Activation, Kernel, Pooling, Scale
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode, RoundMode

SIGMOID, TANH = (Activation(-32768, 32767, None, function) for function in ("SIGMOID", "TANH"))


@custom_rule("tflite.LOGISTIC")
def logistic(site: Site, options: dict[str, Any]) -> Node:
    """LOGISTIC of 16 bits."""
    return _curve(site, options, SIGMOID)


@custom_rule("tflite.TANH")
def tanh(site: Site, options: dict[str, Any]) -> Node:
    """TANH of 16 bits."""
    return _curve(site, options, TANH)


def _curve(site: Site, options: dict[str, Any], curve: Activation) -> Node:
    operation = site.operation
    assert isinstance(operation, Custom)
    (source,) = operation.input_list
    need(source.dtype is DType.INT16 and bool(options), "its kernel is another than for INT16")
    scale = Scale(int(options["multiplier"]), int(options["shift"]))

    def write(emitter: Emitter, target: View) -> None:
        for ifm, ofm in each(emitter, emitter.read(source), target):
            emitter.operations.append(
                Pooling(
                    site.origin,
                    PoolingMode.AVERAGE,
                    ifm,
                    ofm,
                    Kernel(),
                    scale,
                    curve,
                    rounding=RoundMode.NATURAL,
                )
            )

    return site.node((source,), write)
