"""Operators with weights or windows: convolutions, products, pools, softmax."""

from __future__ import annotations

from mizzen.frontends.onnx.operators.row import Operator

LAYERS: tuple[Operator, ...] = ()
