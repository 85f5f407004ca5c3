"""Operators that have no form on integers, and why."""

from __future__ import annotations

from mizzen.frontends.onnx.operators.row import Operator, each, missing

UNKNOWN_COUNT = missing(
    "how many results there are, or in which order, depends on the numbers",
    "cut the network before it, and do the rest in the program that runs it",
)
RANDOM = missing("its result is random")

REFUSED: tuple[Operator, ...] = (
    Operator("LpPool", missing("a norm of each window takes squares and roots of sums")),
    Operator("LpNormalization", missing("a norm takes squares and roots of sums")),
    Operator("GlobalLpPool", missing("a norm of each plane takes squares and roots of sums")),
    Operator("LRN", missing("it divides by a power of sums over channels")),
    Operator("MaxUnpool", missing("it puts numbers at places that are known only at run time"), 9),
    Operator("MaxRoiPool", missing("its windows are known only at run time")),
    Operator("RoiAlign", missing("its windows are known only at run time"), 10),
    Operator("GridSample", missing("it reads at places that are known only at run time"), 16),
    Operator("DeformConv", missing("it reads at places that are known only at run time"), 19),
    *each("NonZero Compress", UNKNOWN_COUNT, 9),
    Operator("NonMaxSuppression", UNKNOWN_COUNT, 10),
    Operator("Unique", UNKNOWN_COUNT, 11),
    *each("RandomNormal RandomUniform RandomNormalLike RandomUniformLike Multinomial", RANDOM, 7),
    Operator("Bernoulli", RANDOM, 15),
    Operator(
        "DynamicQuantizeLinear",
        missing(
            "its scale is computed from the numbers at run time, and an NPU's scales are constants",
            "quantise the model statically (onnxruntime's quantize_static, or `mizzen quantize`)",
        ),
        11,
    ),
    *each(
        "MatMulInteger ConvInteger",
        missing(
            "it is a part of dynamic quantisation, whose scales are known only at run time",
            "quantise the model statically (onnxruntime's quantize_static, or `mizzen quantize`)",
        ),
        10,
    ),
)
