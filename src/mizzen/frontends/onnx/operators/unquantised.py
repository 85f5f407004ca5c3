"""Operators that quantised networks do not have whole: what to use instead."""

from __future__ import annotations

from mizzen.frontends.onnx.operators.row import Operator, each, missing

FINITE = missing("integers stand for finite numbers only")
ATTENTION = missing(
    "its scores have no scale, and integers need one",
    "export it as MatMul, Softmax and MatMul, each with QuantizeLinear after it",
)

UNQUANTISED: tuple[Operator, ...] = (
    Operator("Attention", ATTENTION, 23),
    Operator("LinearAttention", ATTENTION, 27),
    Operator(
        "RotaryEmbedding",
        missing("its halves have no scales", "export it as Slice, Mul, Add and Concat"),
        23,
    ),
    *each(
        "SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss",
        missing("it is for training", "export the network for inference"),
        12,
    ),
    *each(
        "DFT STFT MelWeightMatrix HannWindow HammingWindow BlackmanWindow",
        missing(
            "a transform of sound takes more than 16 bits",
            "compute the spectrum in C, before the network",
        ),
        17,
    ),
    Operator("IsNaN", FINITE, 9),
    Operator("IsInf", FINITE, 10),
    Operator("CenterCropPad", missing("it cuts and pads at once", "use Slice and Pad"), 18),
    Operator("Det", missing("a determinant is a sum of products of many numbers"), 11),
    Operator("Col2Im", missing("it adds blocks that overlap", "use ConvTranspose"), 18),
    Operator("AffineGrid", missing("it makes places that are known only at run time"), 20),
    Operator("TensorScatter", missing("it writes at places that are known only at run time"), 24),
)
