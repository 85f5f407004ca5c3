"""Operators with weights or windows: convolutions, products, pools, softmax."""

from __future__ import annotations

from mizzen.frontends.onnx.operators.row import Operator

LAYERS: tuple[Operator, ...] = (
    Operator("Conv", "layers:conv"),
    Operator("ConvTranspose", "layers:conv_transpose"),
    Operator("Gemm", "layers:gemm"),
    Operator("MatMul", "layers:mat_mul"),
    Operator("MaxPool", "pools:max_pool"),
    Operator("AveragePool", "pools:average_pool"),
    Operator("GlobalAveragePool", "pools:global_average_pool"),
    Operator("GlobalMaxPool", "pools:global_max_pool"),
    Operator("Softmax", "softmaxes:soft_max"),
    Operator("LogSoftmax", "softmaxes:log_soft_max"),
)
