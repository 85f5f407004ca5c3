"""Cases of convolution, pooling and dense layers, by name."""

from __future__ import annotations

from collections.abc import Callable

from .networks import (
    MAP,
    VALID,
    Constant,
    Map,
    bias,
    binary,
    conv,
    dense,
    depthwise,
    full,
    network,
    pool,
    transposed_conv,
    weights,
)

Cases = dict[str, Callable[[], bytes]]

AT_SUM = 1 << 16
"""Weights of 127 whose sum is the largest that is allowed."""

CONVOLUTIONS: Cases = {
    "conv": conv,
    "conv-1x1": lambda: conv(kernel=(1, 1)),
    "conv-64x64": lambda: conv(80, 80, 1, 1, (64, 64)),
    "conv-65x65": lambda: conv(80, 80, 1, 1, (65, 65)),
    "conv-65x1": lambda: conv(80, 4, 1, 1, (65, 1)),
    "conv-1x4097": lambda: conv(1, 4200, 1, 1, (1, 4097)),
    "conv-stride-3": lambda: conv(stride=(3, 3)),
    "conv-stride-4-same-unpadded": lambda: conv(stride=(4, 4)),
    "conv-stride-4-same-padded": lambda: conv(9, 9, stride=(4, 4)),
    "conv-stride-4-same-padded-in-width": lambda: conv(8, 9, stride=(4, 4)),
    "conv-stride-4x1-same": lambda: conv(stride=(4, 1)),
    "conv-stride-4x1-valid": lambda: conv(16, 16, stride=(4, 1), padding=VALID),
    "conv-stride-8-valid": lambda: conv(40, 40, stride=(8, 8), padding=VALID),
    "conv-stride-4-valid-dilated": lambda: conv(16, 16, stride=(4, 4), dilation=2, padding=VALID),
    "conv-stride-4-1x1-dilated": lambda: conv(
        16, 16, kernel=(1, 1), stride=(4, 4), dilation=2, padding=VALID
    ),
    "conv-stride-5-one-output": lambda: conv(3, 3, stride=(5, 5), padding=VALID),
    "conv-dilation-2": lambda: conv(dilation=2),
    "conv-dilation-8": lambda: conv(40, 40, dilation=8),
    "conv-batch": lambda: conv(batch=2),
    "conv-int16": lambda: conv(dtype="int16", biases=bias(4, "int64")),
    "conv-int16-bias-int32": lambda: conv(dtype="int16"),
    "conv-uint8": lambda: conv(
        dtype="uint8", filters=weights(4, 3, 3, 4, dtype="uint8"), zero_point=10
    ),
    "conv-int32": lambda: conv(dtype="int32"),
    "conv-weights-int16": lambda: conv(filters=weights(4, 3, 3, 4, dtype="int16")),
    "conv-weights-per-axis": lambda: conv(
        filters=weights(4, 3, 3, 4, scale=[0.01, 0.02, 0.03, 0.04])
    ),
    "conv-weights-unquantised": lambda: conv(filters=weights(4, 3, 3, 4, scale=None)),
    "conv-weights-computed": lambda: conv(filters=Map([4, 3, 3, 4], scale=0.02)),
    "conv-sum-at-limit": lambda: conv(
        1, 1, AT_SUM, 1, (1, 1), filters=full((1, 1, 1, AT_SUM), 127)
    ),
    "conv-sum-over": lambda: conv(1, 1, 8000, 1, (3, 3), filters=full((1, 3, 3, 8000), 127)),
    "conv-sum-over-uint8": lambda: conv(
        1, 1, 40000, 1, (1, 1), dtype="uint8", filters=full((1, 1, 1, 40000), 255, "uint8")
    ),
    "conv-sum-of-two-channels": lambda: conv(
        1, 1, 40000, 2, (1, 1), filters=full((2, 1, 1, 40000), 127)
    ),
    "conv-depth-65536": lambda: conv(1, 1, 1 << 16, 2, (1, 1)),
    "conv-depth-65537": lambda: conv(1, 1, (1 << 16) + 1, 2, (1, 1)),
    "conv-bias-int16": lambda: conv(biases=bias(4, "int16")),
    "conv-bias-2^40-1": lambda: conv(dtype="int16", biases=bias(4, "int64", (1 << 40) - 1)),
    "conv-bias-2^40": lambda: conv(dtype="int16", biases=bias(4, "int64", 1 << 40)),
    "conv-bias-2^48": lambda: conv(dtype="int16", biases=bias(4, "int64", 1 << 48)),
    "conv-bias-negative": lambda: conv(dtype="int16", biases=bias(4, "int64", -(1 << 45))),
    "conv-bias-computed": lambda: conv(biases=Map([4], "int32", 0.001)),
    "conv-bias-square": lambda: conv(biases=full((2, 2), 0, "int32")),
    "conv-bias-row": lambda: conv(biases=full((1, 4), 0, "int32")),
    "conv-bias-column": lambda: conv(biases=full((4, 1), 0, "int32")),
    "conv-zero-point-200": lambda: conv(zero_point=200),
}

DEPTHWISE: Cases = {
    "depthwise": depthwise,
    "depthwise-multiplier": lambda: depthwise(channels=1, multiplier=2),
    "depthwise-65x65": lambda: depthwise(80, 80, 1, (65, 65)),
    "depthwise-stride-3": lambda: depthwise(stride=(3, 3)),
    "depthwise-stride-4": lambda: depthwise(stride=(4, 4)),
    "depthwise-stride-4-valid": lambda: depthwise(16, 16, stride=(4, 4), padding=VALID),
    "depthwise-stride-4x1": lambda: depthwise(stride=(4, 1)),
    "depthwise-stride-1x4": lambda: depthwise(stride=(1, 4)),
    "depthwise-dilation-3": lambda: depthwise(16, 16, dilation=3),
    "depthwise-int16": lambda: depthwise(dtype="int16"),
    "depthwise-weights-computed": lambda: depthwise(filters=Map([1, 3, 3, 4])),
    "depthwise-sum-over": lambda: depthwise(
        300, 300, 1, (260, 260), padding=VALID, filters=full((1, 260, 260, 1), 127)
    ),
    "depthwise-65536-channels": lambda: depthwise(2, 2, 1 << 16, (1, 1)),
    "depthwise-65537-channels": lambda: depthwise(2, 2, (1 << 16) + 1, (1, 1)),
}

POOLING: Cases = {
    "average": lambda: pool("AVERAGE", 8, 8, (2, 2), (2, 2)),
    "average-same-8x8": lambda: pool("AVERAGE", 16, 16, (8, 8)),
    "average-same-9x8": lambda: pool("AVERAGE", 16, 16, (9, 8)),
    "average-same-8x9": lambda: pool("AVERAGE", 16, 16, (8, 9)),
    "average-same-9x9-unpadded": lambda: pool("AVERAGE", 9, 9, (9, 9), (9, 9)),
    "average-valid-256x256": lambda: pool("AVERAGE", 256, 256, (256, 256), padding=VALID),
    "average-valid-257x1": lambda: pool("AVERAGE", 257, 4, (257, 1), padding=VALID),
    "average-valid-1x257": lambda: pool("AVERAGE", 4, 257, (1, 257), padding=VALID),
    "average-valid-2x32769": lambda: pool("AVERAGE", 2, 32769, (2, 32769), padding=VALID),
    "average-stride-4-unpadded": lambda: pool("AVERAGE", 16, 16, (2, 2), (4, 4)),
    "average-stride-4-padded": lambda: pool("AVERAGE", 17, 17, (2, 2), (4, 4)),
    "average-stride-4-valid": lambda: pool("AVERAGE", 16, 16, (2, 2), (4, 4), VALID),
    "average-int16": lambda: pool("AVERAGE", 8, 8, (2, 2), (2, 2), dtype="int16"),
    "average-int32": lambda: pool("AVERAGE", 8, 8, (2, 2), (2, 2), dtype="int32"),
    "average-batch": lambda: pool("AVERAGE", 8, 8, (2, 2), (2, 2), batch=2),
    "max": lambda: pool("MAX", 8, 8, (2, 2), (2, 2)),
    "max-same-9x9": lambda: pool("MAX", 16, 16, (9, 9)),
    "max-valid-256x256": lambda: pool("MAX", 256, 256, (256, 256), padding=VALID),
    "max-same-257x1": lambda: pool("MAX", 300, 4, (257, 1)),
    "max-valid-2x32769": lambda: pool("MAX", 2, 32769, (2, 32769), padding=VALID),
    "max-stride-4-padded": lambda: pool("MAX", 17, 17, (2, 2), (4, 4)),
    "max-stride-4-valid": lambda: pool("MAX", 17, 17, (2, 2), (4, 4), VALID),
    "max-stride-4x1-same": lambda: pool("MAX", 16, 16, (3, 3), (4, 1)),
    "max-int32": lambda: pool("MAX", 8, 8, (2, 2), (2, 2), dtype="int32"),
    "max-wide": lambda: pool("MAX", 4, 70000, (2, 2), (2, 2)),
    "max-output-per-axis": lambda: network(
        "MAX_POOL_2D",
        [Map(MAP)],
        [Map((1, 4, 4, 8), "int8", [0.1] * 8, [0] * 8, axis=3)],
        ("Pool2DOptions", {"stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}),
    ),
}

DENSE: Cases = {
    "dense": lambda: dense(biases=bias(8)),
    "dense-int16": lambda: dense(dtype="int16", biases=bias(8, "int64")),
    "dense-int32": lambda: dense(dtype="int32"),
    "dense-weights-int16": lambda: dense(filters=weights(8, 16, dtype="int16")),
    "dense-weights-computed": lambda: dense(filters=Map([8, 16])),
    "dense-weights-computed-int16": lambda: dense(
        dtype="int16", filters=Map([8, 16], "int16"), biases=bias(8, "int64")
    ),
    "dense-bias-computed": lambda: dense(biases=Map([8], "int32", 0.001)),
    "dense-65537-deep": lambda: dense((1 << 16) + 1, 1),
    "dense-65537-wide": lambda: dense(2, (1 << 16) + 1),
    "dense-computed-65536-deep": lambda: dense(1 << 16, 2, filters=Map([2, 1 << 16])),
    "dense-computed-65537-deep": lambda: dense(65537, 2, filters=Map([2, 65537])),
    "dense-computed-65537-wide": lambda: dense(2, 65537, filters=Map([65537, 2])),
    "matmul": lambda: matmul([2, 4, 8], [2, 8, 5], [2, 4, 5]),
    "matmul-int16": lambda: matmul([2, 4, 8], [2, 8, 5], [2, 4, 5], "int16"),
    "matmul-transposed": lambda: matmul([2, 8, 4], [2, 5, 8], [2, 4, 5], adj_x=True, adj_y=True),
    "matmul-65537-deep": lambda: matmul([1, 1, 65537], [1, 65537, 1], [1, 1, 1]),
    "matmul-65537-deep-transposed": lambda: matmul(
        [1, 65537, 1], [1, 65537, 1], [1, 1, 1], adj_x=True
    ),
    "matmul-65537-wide": lambda: matmul([1, 1, 2], [1, 2, 65537], [1, 1, 65537]),
    "matmul-by-constant": lambda: network(
        "BATCH_MATMUL",
        [Map([1, 4, 8]), weights(1, 8, 5)],
        [Map([1, 4, 5])],
        ("BatchMatMulOptions", {}),
    ),
}


def matmul(
    first: list[int], second: list[int], output: list[int], dtype: str = "int8", **flags: bool
) -> bytes:
    options = ("BatchMatMulOptions", dict(flags))
    maps = (Map(first, dtype), Map(second, dtype), Map(output, dtype))
    return binary("BATCH_MATMUL", *maps, options=options)


TRANSPOSED: Cases = {
    "transposed": transposed_conv,
    "transposed-stride-1": lambda: transposed_conv(stride=(1, 1)),
    "transposed-stride-3": lambda: transposed_conv(kernel=(3, 3), stride=(3, 3)),
    "transposed-stride-2x1": lambda: transposed_conv(stride=(2, 1)),
    "transposed-stride-1x2-of-height-1": lambda: transposed_conv(1, 4, (1, 2), (1, 2)),
    "transposed-stride-2x1-of-height-1": lambda: transposed_conv(1, 4, (1, 2), (2, 1)),
    "transposed-stride-2x1-of-width-1": lambda: transposed_conv(4, 1, (2, 1), (2, 1)),
    "transposed-valid": lambda: transposed_conv(kernel=(3, 3), padding=VALID),
    "transposed-valid-1x1": lambda: transposed_conv(kernel=(1, 1), padding=VALID),
    "transposed-valid-too-large": lambda: transposed_conv(
        kernel=(3, 3), padding=VALID, output=(10, 10)
    ),
    "transposed-same-too-small": lambda: transposed_conv(output=(7, 7)),
    "transposed-int16": lambda: transposed_conv(dtype="int16"),
    "transposed-weights-computed": lambda: transposed_conv(filters=Map([4, 2, 2, 4])),
    "transposed-sum-over": lambda: transposed_conv(
        1, 1, channels=20000, outputs=1, filters=Constant(full((1, 2, 2, 20000), 127).data, 0.02)
    ),
}

KERNEL_CASES: Cases = {**CONVOLUTIONS, **DEPTHWISE, **POOLING, **DENSE, **TRANSPOSED}
