"""The operators of ONNX, one row for each type, and what lowers it to integers or why nothing does.

Rows name functions and import none of them: the table is read without the package `onnx`, and a
compilation loads the lowerings of the operators that it meets. It must not know who reads it.

A lowering is a function ``(call: OnnxCall) -> Term``, or a tuple of terms where an operator has
several outputs, in a module below `mizzen.frontends.onnx.lowering`. For example::

    def relu(call: OnnxCall) -> Term:
        return bounded(call, 0.0, inf)

    def transpose(call: OnnxCall) -> Term:
        perms = call.attribute("perm", ...)
        return call.moved(lambda value: permuted(call.b, value, perms))

    def div(call: OnnxCall) -> Pending:
        x, y = call.real(0), call.real(1)
        return Pending(lambda target: quotient(call.b, x, y, target), call.shape)

It asks the call for its inputs by position and adds operations with ``call.b``. What the form of a
node does not allow it refuses: ``call.need(holds, reason, help)``, or it raises
`frontends.refusal.RefusedError`. A refused node is computed by ONNX Runtime. See `lowering.call`.
"""

from __future__ import annotations

from itertools import chain

from mizzen.frontends.onnx.operators.elementwise import ELEMENTWISE
from mizzen.frontends.onnx.operators.layers import LAYERS
from mizzen.frontends.onnx.operators.movement import CHOICES, MOVEMENT
from mizzen.frontends.onnx.operators.refused import REFUSED
from mizzen.frontends.onnx.operators.row import CPU, MICROSOFT, Form, Missing, Operator
from mizzen.frontends.onnx.operators.summing import NORMALIZING, RECURRENT, REDUCING
from mizzen.frontends.onnx.operators.unquantised import UNQUANTISED

__all__ = ["CPU", "MICROSOFT", "OPERATORS", "TABLES", "Form", "Missing", "Operator", "operator_of"]

TABLES: tuple[tuple[Operator, ...], ...] = (
    ELEMENTWISE,
    LAYERS,
    MOVEMENT,
    CHOICES,
    REDUCING,
    NORMALIZING,
    RECURRENT,
    REFUSED,
    UNQUANTISED,
)

OPERATORS: dict[tuple[str, str], Operator] = {
    (operator.domain, operator.kind): operator for operator in chain(*TABLES)
}
"""Domain and type to the row."""


def operator_of(domain: str, kind: str) -> Operator | None:
    """Return the row of a type of operator, None where there is none."""
    return OPERATORS.get((domain, kind))
