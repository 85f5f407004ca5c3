"""Operators on each number: functions, arithmetic, bounds."""

from __future__ import annotations

from mizzen.frontends.onnx.operators.row import Operator

ELEMENTWISE: tuple[Operator, ...] = (
    Operator("Relu", "bounds:relu"),
    Operator("Clip", "bounds:clip"),
)
