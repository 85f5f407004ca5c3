"""Forms that Mizzen's own code for Ethos-U85 has and no compiler's stream does, by plain NumPy.

Results transposed into bricks, products of strided maps, chains of four operations with tables and
operands that are broadcast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.machine.commands_values import (
    PoolingModeU85,
    ReverseU85,
    Storage,
    TransposeU85,
)

from .assembler import IFM, IFM2, OFM, U85_256, Settings, feature_map, window
from .test_inferred_u85 import random, result, run

Array = npt.NDArray[Any]
Shape = tuple[int, int, int]
BRICK = 16
ADD, SUB = 1, 2
AXES = {
    TransposeU85.HWC: (0, 1, 2), TransposeU85.WHC: (1, 0, 2), TransposeU85.HCW: (0, 2, 1),
    TransposeU85.WCH: (1, 2, 0), TransposeU85.CHW: (2, 0, 1), TransposeU85.CWH: (2, 1, 0),
}  # fmt: skip


def bricks(prefix: str, shape: Shape, dtype: npt.DTypeLike, offset: int, **more: int) -> Settings:
    """SET commands of a map in bricks of 16 channels."""
    height, width, depth = shape
    size = np.dtype(dtype).itemsize
    slice_ = width * BRICK * size
    return feature_map(prefix, shape, dtype, offset, activation_format=1, **more) | {
        f"SET_{prefix}_STRIDE_X": {"stride": BRICK * size},
        f"SET_{prefix}_STRIDE_C": {"stride": slice_},
        f"SET_{prefix}_STRIDE_Y": {"stride": slice_ * -(-depth // BRICK)},
        f"SET_{prefix}_HEIGHT0_M1": {"height": height},
    }


def laid(x: Array) -> Array:
    """Return the bytes of a map in bricks; what is beyond its channels is 0."""
    height, width, depth = x.shape
    padded = np.zeros((height, width, -(-depth // BRICK) * BRICK), x.dtype)
    padded[..., :depth] = x
    return padded.reshape(height, width, -1, BRICK).transpose(0, 2, 1, 3).copy()


@pytest.mark.parametrize("reverse", [ReverseU85.NONE, ReverseU85.H, ReverseU85.W, ReverseU85.C])
@pytest.mark.parametrize("transpose", AXES)
def test_results_transposed_into_bricks(transpose: TransposeU85, reverse: ReverseU85) -> None:
    x = random((4, 3, 21))
    axes = AXES[transpose]
    turned = np.flip(x, int(reverse) - 1) if reverse is not ReverseU85.NONE else x
    expected = turned.transpose(axes)
    out: Shape = expected.shape[0], expected.shape[1], expected.shape[2]
    order = {"activation_transpose": transpose, "activation_reverse": reverse}
    settings = (
        feature_map("IFM", (4, 3, 21), np.int8, IFM)
        | result((4, 3, 21), np.int8, **order)
        | bricks("OFM", out, np.int8, OFM, scale_mode=1, **order)
        | window(1, 1)
    )
    made = U85_256.commands(settings, "OP_POOL", pooling_mode=PoolingModeU85.SUM)
    stored = laid(expected)
    found, _ = run(made, [x], (stored.shape, np.int8))
    assert np.array_equal(found.ravel()[: stored.size], stored.ravel())


def test_products_of_every_other_row_of_a_map() -> None:
    """IFM is strided NHWC of 20 bytes a pixel, of which 16 are taken; IFM2 lies in bricks."""
    held, weights = random((4, 3, 20)), random((1, 8, 16), seed=1)
    settings = (
        feature_map("IFM", (2, 3, 16), np.int8, IFM)
        | {"SET_IFM_STRIDE_X": {"stride": 20}, "SET_IFM_STRIDE_Y": {"stride": 2 * 3 * 20}}
        | {"SET_IFM_DEPTH_M1": {"depth": 16}}
        | bricks("IFM2", (1, 8, 16), np.int8, IFM2)
        | result((2, 3, 8), np.int32)
        | window(1, 1)
    )
    made = U85_256.commands(settings, "OP_CONV", weights_ifm2=1)
    found, _ = run(made, [held, laid(weights)], ((2, 3, 8), np.int32))
    left = held[::2, :, :16].astype(np.int32)
    assert np.array_equal(found, left @ weights[0].astype(np.int32).T)


SHAPE: Shape = (4, 3, 5)


def link(*, first: int | None, second: Shape, last: bool, number: int, swap: bool) -> Settings:
    """SET commands of a sum of what a chain buffer holds (or a map) and a map of its own shape."""
    chained, own = ("IFM2", "IFM") if swap else ("IFM", "IFM2")
    mode = sum(bit for bit, size in zip((1, 2, 4), second, strict=True) if size == 1)
    out = {} if last else {"activation_storage": Storage.CHAINED}
    taken = feature_map(chained, SHAPE, np.int32, IFM)
    if first is not None:
        taken = feature_map(chained, SHAPE, np.int32, 0, activation_storage=Storage.CHAINED)
        taken[f"SET_{chained}_REGION"] = {"region": first}
    settings = (
        taken
        | feature_map(own, second, np.int32, IFM2)
        | {f"SET_{own}_BROADCAST": {"broadcast_mode": mode}, f"SET_{chained}_BROADCAST": {}}
        | {f"SET_IFM{side}_SCALE": {"scale": 1} for side in ("", "2")}
        | result(SHAPE, np.int32, **out)
        | {"SET_ACC_FORMAT": {}, "SET_IFM_UPSCALE": {}}
    )
    if not last:
        settings["SET_OFM_REGION"] = {"region": number}
    return settings


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    "second", [(4, 3, 5), (1, 3, 5), (4, 1, 5), (4, 3, 1), (1, 1, 5), (1, 1, 1)]
)
def test_chains_of_four_with_operands_that_are_broadcast(second: Shape, swap: bool) -> None:
    """Of sums and a difference; what comes through the chain may be either operand."""
    x = random(SHAPE, np.int32) >> 8
    y = random(second, np.int32, seed=1) >> 8
    made: list[Instruction] = []
    expected = x
    for number, mode in enumerate((ADD, SUB, ADD, SUB)):
        settings = link(first=number - 1 if number else None, second=second, last=number == 3,
                        number=number, swap=swap)  # fmt: skip
        made += U85_256.commands(settings, "OP_ELEMENTWISE", elementwise_mode=mode)
        left, right = (y, expected) if swap else (expected, y)
        expected = left + right if mode == ADD else left - right
    found, _ = run(made, [x, y], (SHAPE, np.int32))
    assert np.array_equal(found, expected)
