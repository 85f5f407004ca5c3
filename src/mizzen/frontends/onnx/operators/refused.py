"""Operators that have no form on integers, and why."""

from __future__ import annotations

from mizzen.frontends.onnx.operators.row import Operator, each, missing

REFUSED: tuple[Operator, ...] = (
    Operator("LpPool", missing("a norm of each window takes squares and roots of sums")),
    Operator("LpNormalization", missing("a norm takes squares and roots of sums")),
    Operator("GlobalLpPool", missing("a norm of each plane takes squares and roots of sums")),
    Operator("LRN", missing("it divides by a power of sums over channels")),
    Operator("MaxUnpool", missing("it puts numbers at places that are known only at run time")),
    Operator("MaxRoiPool", missing("its windows are known only at run time")),
    Operator("RoiAlign", missing("its windows are known only at run time"), 10),
    Operator("GridSample", missing("it reads at places that are known only at run time"), 16),
    Operator("DeformConv", missing("it reads at places that are known only at run time"), 19),
    *each(
        "NonMaxSuppression TopK NonZero Unique Compress",
        missing("how many results there are, or in which order, depends on the numbers"),
    ),
    *each(
        "RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial",
        missing("its result is random"),
    ),
    *each(
        "Loop Scan If",
        missing(
            "it is control flow that depends on the numbers",
            "unroll it when the model is exported, or take the branch that the device needs",
        ),
    ),
    *each(
        "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
        "SequenceMap ConcatFromSequence SplitToSequence Optional OptionalGetElement "
        "OptionalHasElement",
        missing("its tensors are in a sequence, not in a graph"),
    ),
    *each(
        "StringNormalizer StringConcat StringSplit RegexFullMatch TfIdfVectorizer LabelEncoder",
        missing("it works on text"),
    ),
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
