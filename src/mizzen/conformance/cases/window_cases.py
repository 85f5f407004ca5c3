"""Convolutions, dense layers, pools, reductions, recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.conformance.networks import (
    RELU,
    RELU6,
    RELU_N1_TO_1,
    SCALE,
    VALID,
    ZERO,
    Case,
    Q,
    Window,
    conv,
    dense,
    depthwise,
    i32,
    lstm,
    one,
    pool,
    reduce,
    transpose_conv,
)


def rows() -> Iterator[Case]:
    """Return the networks."""
    yield from convolutions()
    yield from poolings()
    yield from recurrent()


def convolutions() -> Iterator[Case]:
    """Return convolutions, dense layers and transposed convolutions."""
    yield conv((1, 7, 9, 5), 11, Window())
    yield conv((1, 8, 8, 3), 8, Window((5, 3), (2, 2)))
    yield conv((1, 9, 9, 16), 16, Window((1, 1)))
    yield conv((1, 6, 5, 40), 33, Window((1, 1), activation=RELU))
    yield conv((1, 11, 7, 20), 24, Window((3, 3), (1, 2), padding=VALID, activation=RELU6))
    yield conv((1, 12, 12, 4), 6, Window((3, 3), dilation=(2, 2)))
    yield conv((1, 12, 10, 17), 5, Window((2, 3), dilation=(1, 2), padding=VALID))
    yield conv((1, 20, 20, 2), 3, Window((11, 9), (3, 3)))
    yield conv((1, 1, 30, 7), 9, Window((1, 5), (1, 3)))
    yield conv((1, 24, 1, 6), 10, Window((7, 1)))
    yield conv((2, 5, 5, 8), 8, Window())
    yield conv((1, 16, 15, 8), 6, Window((3, 3), (4, 5), padding=VALID))
    yield conv((1, 13, 13, 100), 20, Window((3, 3)))
    yield conv((1, 5, 5, 8), 8, Window(), per_channel=False)
    yield conv((1, 7, 7, 6), 9, Window((3, 3)), "int16")
    yield conv((1, 7, 9, 20), 17, Window((3, 2), (2, 1), padding=VALID, activation=RELU), "int16")
    yield conv((1, 4, 4, 33), 8, Window((1, 1)), "int16")
    yield conv((1, 7, 7, 6), 9, Window((3, 3)), "uint8", per_channel=False)
    yield conv((1, 8, 8, 4), 5, Window((4, 4), (2, 2)))
    yield conv((1, 9, 9, 3), 130, Window((1, 1), (2, 2)))
    yield conv((1, 10, 6, 1), 1, Window((3, 3), dilation=(3, 1), padding=VALID))
    yield conv((1, 9, 11, 6), 7, Window((3, 3), (3, 3), activation=RELU_N1_TO_1))
    yield conv((1, 12, 12, 5), 6, Window((3, 3), dilation=(2, 2)), "int16")
    yield conv((1, 7, 7, 6), 9, Window((5, 3), (2, 2), padding=VALID, activation=RELU6), "uint8",
               per_channel=False)  # fmt: skip
    yield conv((1, 6, 6, 5), 4, Window(), "int16", bias="int32")
    for shape, multiplier, window in (
        ((1, 9, 7, 11), 1, Window()),
        ((1, 9, 9, 16), 1, Window((3, 3), (2, 2))),
        ((1, 10, 8, 24), 1, Window((5, 3), padding=VALID, activation=RELU6)),
        ((1, 11, 11, 3), 1, Window((3, 3), dilation=(2, 2))),
        ((1, 8, 8, 1), 7, Window((3, 3), (2, 1))),
        ((1, 16, 16, 5), 1, Window((9, 10), (1, 3))),
        ((1, 6, 6, 40), 1, Window((1, 1))),
    ):
        yield depthwise(shape, multiplier, window)
    yield depthwise((1, 7, 8, 9), 1, Window((3, 3)), "int16")
    yield depthwise((1, 9, 9, 5), 1, Window((3, 3), dilation=(2, 2)), "int16")
    yield depthwise((1, 8, 8, 3), 2, Window((3, 3)))
    yield depthwise((1, 9, 8, 6), 1, Window((4, 2), (3, 2), padding=VALID, activation=RELU))
    yield depthwise((1, 8, 8, 18), 1, Window((2, 3), (2, 2), activation=RELU), "int16")
    yield depthwise((1, 8, 8, 18), 1, Window((3, 3)), "uint8", per_channel=False)
    for batch, inputs, outputs in ((1, 17, 9), (1, 100, 40), (3, 12, 20), (16, 33, 8), (1, 1, 1)):
        yield dense(batch, inputs, outputs)
    yield dense(1, 64, 10, activation=RELU)
    yield dense(1, 40, 12, "int16")
    yield dense(4, 20, 12, "int16")
    yield transpose_conv((1, 5, 4, 6), 7, (3, 3), (2, 2))
    yield transpose_conv((1, 4, 5, 3), 8, (4, 4), (2, 2), VALID)
    yield transpose_conv((1, 6, 6, 5), 4, (3, 3), (1, 1))
    yield transpose_conv((1, 5, 5, 4), 6, (2, 2), (2, 2))
    yield transpose_conv((1, 5, 4, 6), 7, (3, 3), (2, 2), dtype="int16")
    yield transpose_conv((1, 5, 4, 6), 7, (3, 3), (1, 2))
    yield dense(1, 40, 12, "int16", RELU)
    yield dense(1, 300, 7, activation=RELU6)
    yield dense(5, 33, 17, per_channel=True)


def poolings() -> Iterator[Case]:
    """Return pools and reductions."""
    for dtype in ("int8", "int16"):
        for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            yield pool(kind, (1, 9, 8, 13), Window((3, 3), (2, 2)), dtype)
            yield pool(kind, (1, 8, 8, 16), Window((2, 2), (2, 2), padding=VALID), dtype)
            yield pool(kind, (1, 7, 5, 6), Window((7, 5), padding=VALID), dtype)
            yield pool(kind, (1, 10, 9, 3), Window((2, 4), (1, 3), activation=RELU6), dtype)
            yield pool(kind, (1, 5, 6, 20), Window((3, 2)), dtype)
        yield reduce("MEAN", (1, 7, 6, 11), (1, 2), dtype)
        yield reduce("MEAN", (1, 5, 9, 8), (1,), dtype, Q(SCALE[dtype] / 2, ZERO[dtype] // 2))
        yield reduce("MEAN", (1, 4, 1, 30), (3,), dtype)
        yield reduce("MEAN", (1, 6, 6, 5), (1, 2), dtype, keep=False)
    for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield pool(kind, (1, 9, 8, 13), Window((3, 3), (2, 2), activation=RELU), "uint8")
        yield pool(kind, (1, 300, 2, 3), Window((260, 1), padding=VALID))
        yield pool(kind, (2, 6, 6, 4), Window((2, 2), (2, 2)))
    for dtype in ("int16", "uint8", "int32"):
        for kind in ("REDUCE_MAX", "REDUCE_MIN"):
            yield reduce(kind, (1, 6, 5, 7), (1,), dtype)
        yield reduce("SUM", (1, 6, 5, 2), (3,), dtype)
    for kind in ("REDUCE_MAX", "REDUCE_MIN", "SUM", "MEAN"):
        yield reduce(kind, (1, 3, 3, 5), (1, 2), keep=False)
        yield reduce(kind, (1, 3, 4, 5), (1, 2, 3))
    yield reduce("SUM", (1, 6, 5, 7), (3,), out_q=Q(0.15, 3))
    yield reduce("MEAN", (2, 6, 5, 4), (1, 2))
    yield reduce("MEAN", (1, 70, 70, 2), (1, 2))
    yield pool("AVERAGE_POOL_2D", (1, 6, 6, 5), Window((3, 3)), "uint8")
    yield pool("MAX_POOL_2D", (1, 6, 6, 5), Window((3, 3)), "uint8")
    yield pool("AVERAGE_POOL_2D", (1, 20, 20, 2), Window((8, 8), (3, 3)))
    yield pool("MAX_POOL_2D", (1, 17, 16, 3), Window((2, 3), (4, 5), padding=VALID))
    yield pool("AVERAGE_POOL_2D", (1, 16, 16, 3), Window((4, 4), (4, 4), padding=VALID))
    yield pool("AVERAGE_POOL_2D", (1, 30, 3, 2), Window((30, 1), padding=VALID))
    yield reduce("MEAN", (1, 6, 6, 5), (1, 2), "uint8")
    yield reduce("REDUCE_MAX", (1, 6, 5, 7), (1,))
    yield reduce("REDUCE_MAX", (1, 6, 5, 7), (3,))
    yield reduce("REDUCE_MIN", (1, 6, 5, 7), (2,))
    # Equal scales: kernels round a rescaled sum away from zero, the compiler to nearest.
    yield reduce("SUM", (1, 6, 5, 2), (3,))
    yield reduce("SUM", (1, 2, 5, 7), (1,))
    yield reduce("SUM", (1, 6, 2, 7), (2,), "int16")
    for shape in ((1, 4, 5, 9), (1, 1, 1, 100)):
        name = f"argmax_{'x'.join(map(str, shape))}"
        yield one(name, "ARG_MAX", [shape], [shape[:3]], constants=[i32(3)[0]],
                  options=("ArgMaxOptions", {"output_type": 2}), out_dtype="int32")  # fmt: skip


def recurrent() -> Iterator[Case]:
    """Return operators with state, and products of two inputs."""
    yield lstm("int8")
    yield lstm("int16")
    yield lstm("int8", time_major=True)
    for dtype in ("int16", "uint8"):
        yield one(f"batch_matmul_{dtype}", "BATCH_MATMUL", [(2, 5, 6), (2, 6, 7)], [(2, 5, 7)],
                  dtype, ("BatchMatMulOptions", {}), out_q=Q(0.1, ZERO[dtype])
                  if dtype == "uint8" else Q(0.002))  # fmt: skip
    yield one("batch_matmul_adjoint", "BATCH_MATMUL", [(2, 3, 5, 6), (2, 3, 7, 6)], [(2, 3, 5, 7)],
              options=("BatchMatMulOptions", {"adj_y": True}), out_q=Q(0.1, -4))  # fmt: skip
    yield one("argmax_uint8", "ARG_MAX", [(1, 4, 5, 9)], [(1, 4, 5)], "uint8",
              ("ArgMaxOptions", {"output_type": 2}), constants=[i32(3)[0]],
              out_dtype="int32")  # fmt: skip
    yield one("argmax_h", "ARG_MAX", [(1, 4, 5, 9)], [(1, 5, 9)], constants=[i32(1)[0]],
              options=("ArgMaxOptions", {"output_type": 2}), out_dtype="int32")  # fmt: skip
    yield one("batch_matmul", "BATCH_MATMUL", [(1, 5, 6), (1, 6, 7)], [(1, 5, 7)],
              options=("BatchMatMulOptions", {}), out_q=Q(0.1, -4))  # fmt: skip
