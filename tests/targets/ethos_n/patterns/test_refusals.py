"""What does not fit is told with what must hold and what came.

Texts of what is common to all composites are those of Apache TVM's tests of failures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.graph import DType, ResizeMode, TensorType
from mizzen.targets.ethos_n.config import Profile
from mizzen.targets.ethos_n.patterns import (
    Covering,
    RegionRefusedError,
    accumulated,
    generate,
    legality,
)

from .graphs import FOUR_TOPS, Net, refusals


def batch(net: Net) -> None:
    net.outputs(net.conv(net.input(2, 8, 8, 16), 8))


def dilated(net: Net) -> None:
    net.outputs(net.conv(net.input(1, 8, 8, 16), 8, dilation=(2, 1), pad=(2, 2, 1, 1)))


def batch_and_dilation(net: Net) -> None:
    net.outputs(net.conv(net.input(2, 8, 8, 16), 8, dilation=(2, 1), pad=(2, 2, 1, 1)))


def wide(net: Net) -> None:
    net.outputs(net.clamp(net.input(1, 8, 8, 16, dtype=DType.INT16), -100, 100))


def deep(net: Net) -> None:
    net.outputs(net.clamp(net.input(1, 2, 2, 2, 8), -100, 100))


def crd(net: Net) -> None:
    net.outputs(net.spread(net.input(1, 4, 4, 16), crd=True))


def thirds(net: Net) -> None:
    net.outputs(net.spread(net.input(1, 4, 4, 18), block=3))


def steep(net: Net) -> None:
    x = (np.arange(-128, 128) - 3) * 0.05
    leaky = np.where(x < 0, 1.5 * x, x)
    net.outputs(net.table(net.input(1, 8, 8, 16), leaky, (0.2, 0), "LEAKY_RELU"))


def swish(net: Net) -> None:
    x = (np.arange(-128, 128) - 3) * 0.05
    net.outputs(net.table(net.input(1, 8, 8, 16), x / (1 + np.exp(-x)), (0.1, 0), "SILU"))


def twisted(net: Net) -> None:
    x = net.input(1, 8, 8, 16)
    b = net.begin("TRANSPOSE")
    net.outputs(b("TRANSPOSE", x, perms=(0, 3, 1, 2), quantization=x.quantization))


def along_channels(net: Net) -> None:
    x = net.input(1, 8, 8, 16)
    b = net.begin("MEAN")
    value = b("REDUCE_SUM", net.rescale(x, 1.0, (3, 0), DType.INT32), axis=3)
    net.outputs(net.rescale(value, 1 / 16, (0, 3), q=(0.05, 3)))


def sum_of_planes(net: Net) -> None:
    x = net.input(1, 7, 7, 16)
    b = net.begin("SUM")
    value = b("REDUCE_SUM", net.rescale(x, 1.0, (3, 0), DType.INT32), axis=1)
    net.outputs(net.rescale(b("REDUCE_SUM", value, axis=2), 1.0, (0, 3), q=(0.05, 3)))


def wide_output(net: Net) -> None:
    x = net.input(1, 8, 8, 16)
    net.begin("QUANTIZE")
    net.outputs(net.rescale(x, 4.0, (3, 0), DType.INT16, q=(0.0125, 0)))


def sum_by_channel(net: Net) -> None:
    x, y = net.input(1, 8, 8, 16), net.input(1, 8, 8, 16)
    net.begin("ADD")
    left, right = (net.rescale(value, 1.0, (3, 0), DType.INT32) for value in (x, y))
    total = net.b("ADD", left, right)
    net.outputs(net.rescale(total, np.linspace(0.5, 1, 16), (0, 0), q=(0.1, 0)))


def difference(net: Net) -> None:
    x, y = net.input(1, 8, 8, 16), net.input(1, 8, 8, 16)
    net.outputs(net.combined("SUB", x, y, (0.1, 0)))


def coarse_sum(net: Net) -> None:
    """63 * 255 is about the most that the kernel's registers hold."""
    x, y = net.input(1, 8, 8, 16, q=(6.5, -128)), net.input(1, 8, 8, 16, q=(0.1, 0))
    net.outputs(net.combined("ADD", x, y, (0.1, 0)))


def coarse_leaky(net: Net) -> None:
    x = (np.arange(-128, 128) + 128) * 6.5
    net.outputs(net.table(net.input(1, 8, 8, 16, q=(6.5, -128)), x, (0.1, 0), "LEAKY_RELU"))


def coarse_sigmoid(net: Net) -> None:
    x = (np.arange(-128, 128) - 3) * 3000.0
    sigmoid = 1 / (1 + np.exp(-np.clip(x, -99, 99)))
    net.outputs(net.table(net.input(1, 8, 8, 16, q=(3000.0, 3)), sigmoid, (1 / 256, -128)))


def fine_mean(net: Net) -> None:
    net.outputs(net.mean(net.input(1, 8, 8, 16), (0.01, 0)))


def thin(net: Net) -> None:
    x = net.input(1, 1, 8, 16)
    net.outputs(net.pool("AVG_POOL2D", x, (3, 3), (1, 1), (1, 1, 1, 1)))


def padded_in_front(net: Net) -> None:
    x = net.input(1, 16, 16, 16)
    net.outputs(net.pool("MAX_POOL2D", x, (3, 3), (2, 2), (1, 0, 1, 0)))


def bilinear(net: Net) -> None:
    value = net.doubled(net.input(1, 4, 4, 16), ResizeMode.BILINEAR)
    net.outputs(net.rescale(value, 1 / 16, q=(0.05, 3)))


def corners(net: Net) -> None:
    net.outputs(net.doubled(net.input(1, 4, 4, 16), offset=0))


def stride(net: Net) -> None:
    net.outputs(net.conv(net.input(1, 10, 10, 16), 8, (1, 1), stride=(3, 3), pad=(0, 0, 0, 0)))


def padding(net: Net) -> None:
    net.outputs(net.conv(net.pad(net.input(1, 8, 8, 16), (0, 0, 1, 1, 1, 1, 0, 0), 9), 8))


def lone_padding(net: Net) -> None:
    x = net.pad(net.input(1, 8, 8, 16), (0, 0, 1, 1, 1, 1, 0, 0))
    net.outputs(net.clamp(x, -100, 100))


def part(net: Net) -> None:
    x = net.input(1, 8, 8, 16)
    net.begin("SLICE")
    net.outputs(net.part(x, 1, 0, 4))


def unquantized(net: Net) -> None:
    x = net.graph.add_input(TensorType((1, 8, 8, 16), DType.INT8))
    b = net.begin("RELU")
    net.outputs(b("CLAMP", x, min_val=-5, max_val=9))


def maximum(net: Net) -> None:
    x = net.input(1, 8, 8, 16)
    net.begin("MAXIMUM")
    a = net.rescale(x, 1.0, (0, 0), DType.INT32)
    net.outputs(net.rescale(net.b("MAXIMUM", a, a), 1.0, q=(0.05, 3)))


def scale(net: Net) -> None:
    net.outputs(net.conv(net.input(1, 4, 4, 16, q=(50.0, 0)), 8, scales=(900.0,), q=(0.01, 0)))


def computed_weights(net: Net) -> None:
    x, w = net.input(1, 8, 8, 16), net.input(8, 1, 1, 16, q=(0.01, 0))
    b = net.begin("CONV_2D")
    bias = b.constant(np.zeros(8), DType.INT32)
    sums = b("CONV2D", x, w, bias, net.zero(3), net.zero(), pad=(0, 0, 0, 0), stride=(1, 1))
    net.outputs(net.rescale(sums, 0.001, (0, 1), q=(0.2, 1)))


ONLY = " (only its performance can be estimated)"
REFUSALS: dict[Callable[[Net], None], tuple[str, ...]] = {
    batch: ("batch size=2, batch size must = 1",),
    dilated: ("dilation=[2, 1], dilation must = [1, 1]",),
    batch_and_dilation: (
        "batch size=2, batch size must = 1",
        "dilation=[2, 1], dilation must = [1, 1]",
    ),
    wide: ("dtype='int16', dtype must be either uint8, int8 or int32",),
    deep: ("dimensions=5, dimensions must be <= 4",),
    crd: ("mode=CRD, mode must = DCR",),
    thirds: (f"DepthToSpace must have blocks of 2x2, and has 3{ONLY}",),
    steep: ("leaky relu alpha must be less than 1 and greater than 0, but was 1.50036",),
    swish: ("it is a function of each number, the function must be sigmoid, tanh or leaky ReLU",),
    twisted: ("it exchanges axes, channels must be last from end to end",),
    along_channels: ("it sums along axes, the sum must be a mean over height and width",),
    sum_of_planes: ("multiplier=1, multiplier of a mean must = 0.0204082",),
    wide_output: ("dtype='int16', dtype must be either uint8, int8 or int32",),
    coarse_sum: ("input scale / output scale=65, it must be <= 63.2471, or numbers wrap round",),
    coarse_leaky: ("input scale / output scale=65, it must be <= 63.2471, or numbers wrap round",),
    coarse_sigmoid: ("input scale=3000, input scale must be < 1024",),
    fine_mean: (
        "DepthwiseConvolution must have a square kernel of 1, 2, 3, 5, 7 or 9, and has 8x8" + ONLY,
        "input scale / output scale=5, it must be <= 4 for a mean",
    ),
    thin: (
        "plane=1x8, a plane must have at least 2 rows and columns, or its means are divided by "
        "too much",
        "padding of a mean must be around a window of 3x3 with stride 1",
    ),
    padded_in_front: (
        "Pooling must have a stride of 2x2 and one of these windows for max pooling: 1x1 without "
        "padding, 2x2 without padding, 2x2 padded by 1 at the end, 3x3 without padding, 3x3 padded "
        "by 1 at the end, and has a window of 3x3, stride 2x2, top 1, bottom 0, left 1, right 0"
        + ONLY,
        "zero point=3, zero point must = -128 for max pooling padded at the start",
    ),
    sum_by_channel: ("multipliers=one for each channel, multipliers must be one for all",),
    difference: ("it subtracts a tensor, what is subtracted must be a constant",),
    bilinear: (
        "mode=bilinear, mode must = nearest",
        "dtype='int32', dtype must be either uint8, int8 or int32",
    ),
    corners: (
        "samples of height must be every pixel twice",
        "samples of width must be every pixel twice",
    ),
    stride: (f"Convolution must have a stride of 1x1 or 2x2, and has 3x3{ONLY}",),
    padding: ("padding number=9, padding number must = 3",),
    lone_padding: ("it pads, the next operator must be a convolution that can pad itself",),
    part: ("it takes a part, parts must be all of a tensor, along one axis",),
    unquantized: ("quantization=unknown, feature maps must have one scale and one zero point",),
    maximum: ("Ethos-N78 has no form of MAXIMUM",),
    scale: (
        "Convolution must have input scale * weight scale / output scale from 0 to under 65536, "
        f"and has 4.5e+06{ONLY}",
    ),
    computed_weights: (
        "it is as no composite is; the nearest is qnn_fc: CONV2D: weights must be a constant",
    ),
}


@pytest.mark.parametrize("build", REFUSALS, ids=lambda build: build.__name__)
def test_reasons(build: Callable[[Net], None]) -> None:
    net = Net()
    build(net)
    assert set(refusals(net.graph)) == set(REFUSALS[build])


def test_all_problems_are_told_at_once() -> None:
    net = Net()
    batch_and_dilation(net)
    legal = legality(Covering(net.graph, FOUR_TOPS))
    reasons = legal(net.graph.sorted()[-1])
    assert accumulated(reasons) == (
        "batch size=2, batch size must = 1; dilation=[2, 1], dilation must = [1, 1];"
    )
    assert accumulated([]) == ""
    assert [(reason.limit, reason.actual) for reason in reasons] == [
        ("a batch of 1", "2"),
        ("no dilation", "[2, 1]"),
    ]
    assert all(reason.help and reason.source for reason in reasons)


def test_a_group_is_refused_whole() -> None:
    """The RESHAPE of a dense layer has its layer's reasons."""
    net = Net()
    net.outputs(net.dense(net.input(2, 16), 4))
    legal = legality(Covering(net.graph, FOUR_TOPS))
    found = {legal(row) for row in net.graph if row.kind not in ("CONST", "CONST_SHAPE")}
    assert len(found) == 1
    assert all(reason.rule == "batch" for reason in found.pop())


def test_padding_stays_where_its_convolution_stays() -> None:
    net = Net()
    x = net.pad(net.input(1, 16, 16, 16), (0, 0, 0, 1, 0, 1, 0, 0))
    x = net.conv(x, 8, stride=(2, 2), pad=(0, 0, 0, 0))
    convolution = x.producer
    assert convolution is not None
    net.b("REVERSE", x, axis=1, quantization=x.quantization)  # of the convolution's own group
    reverse = net.graph.sorted()[-1]
    net.outputs(reverse.result)
    legal = legality(Covering(net.graph, FOUR_TOPS))
    (pad,) = [row for row in net.graph if row.kind == "PAD"]
    (reason,) = legal(pad)
    assert reason.message == (
        "it is part of ethos-n.qnn_conv2d with RESCALE, which stays on the CPU"
    )
    (reason,) = legal(reverse)
    assert reason.message == "Ethos-N78 has no form of REVERSE"


def test_constants_have_no_reasons() -> None:
    net = Net()
    net.outputs(net.conv(net.input(1, 8, 8, 16), 8))
    legal = legality(Covering(net.graph, FOUR_TOPS))
    assert not any(legal(row) for row in net.graph)


def test_region_that_is_not_supported() -> None:
    net = Net()
    part(net)
    with pytest.raises(RegionRefusedError) as error:
        generate(net.graph, FOUR_TOPS)
    assert str(error.value) == (
        "error[E990]: SLICE must be supported by the NPU, and is not: it takes a part, parts must "
        "be all of a tensor, along one axis\n"
        "  at   net, operator 0 SLICE\n"
        "  rule no-composite\n"
        "  help split the tensor: all parts along one axis, nothing left out"
    )
    assert {group: reason.rule for group, reason in error.value.groups.items()} == {
        0: "no-composite"
    }


def test_input_that_nothing_takes() -> None:
    net = Net()
    net.input(1, 2, 2, 16)
    net.outputs(net.clamp(net.input(1, 8, 8, 16), -9, 9))
    with pytest.raises(MizzenError) as error:
        generate(net.graph, FOUR_TOPS)
    assert str(error.value) == (
        "error[E992]: every input of a region must be taken, and nothing takes input 0\n"
        "  help leave the input out of the region"
    )


def test_another_release_is_asked_about_what_is_not_taken() -> None:
    """Release 25.03 has maxima of 3x3 with stride 1; what neither has, gets no such help."""
    net = Net()
    x = net.input(1, 8, 8, 16)
    pooled = net.pool("MAX_POOL2D", x, (3, 3), (1, 1), pad=(1, 1, 1, 1))
    net.outputs(net.pool("MAX_POOL2D", pooled, (4, 2), (2, 2)))
    for release in Profile:
        covering = Covering(net.graph, replace(FOUR_TOPS, release=release))
        first, second = (covering.reasons([row]) for row in net.graph.sorted()[-2:])
        taken = release is Profile.V25_03
        said = "Arm's Support Library 25.03 takes it as it is"
        assert [said in reason.help for reason in first] == [taken]
        assert not any(said in reason.help for reason in second)
