"""Networks as work graphs: the nodes of each operation, their layouts and numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import MceOperation, PleOperation, Upsample
from mizzen.targets.ethos_n.config import VARIANTS, capabilities_of
from mizzen.targets.ethos_n.lower import lower
from mizzen.targets.ethos_n.lower.lowering import interleaved_channels, linear_shape, pointwise_work
from mizzen.targets.ethos_n.lower.work_graph import (
    Clamp,
    Concat,
    Copy,
    Extract,
    FusedPle,
    Layout,
    LonePle,
    Mce,
    Node,
    Ratio,
    Relabel,
    Relayout,
    Requantization,
    ShapeRatio,
    Sink,
    Source,
    Stored,
)
from mizzen.targets.ethos_n.network import (
    Addition,
    Array,
    Concatenation,
    Convolution,
    DepthToSpace,
    DepthwiseConvolution,
    FullyConnected,
    LeakyRelu,
    MeanXy,
    Network,
    Operand,
    Operation,
    Pooling,
    PoolingType,
    Relu,
    Requantize,
    Reshape,
    Resize,
    ResizeAlgorithm,
    Sigmoid,
    Split,
    Tanh,
    Transpose,
    TransposeConvolution,
)
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    Padding,
    QuantizationInfo,
    Shape,
    Stride,
    TensorInfo,
)

SIXTEEN_BANKS = capabilities_of(VARIANTS["ethos-n78-4tops-4ple"])
IN = QuantizationInfo(128, (0.02,))
OUT = QuantizationInfo(110, (0.7,))
SAME = Padding(1, 1, 1, 1)


def image(*extents: int, quantization: QuantizationInfo = IN) -> TensorInfo:
    height, width, channels = extents
    return TensorInfo((1, height, width, channels), quantization=quantization)


def weighted(
    network: Network, operation: Operation, source: Operand, shape: Shape, data: Array | None = None
) -> Operand:
    """Add an operation with weights of `shape`, which count up unless they are given."""
    form = DataFormat.HWIM if isinstance(operation, DepthwiseConvolution) else DataFormat.HWIO
    outputs = shape[2] * shape[3] if form is DataFormat.HWIM else shape[3]
    info = TensorInfo(shape, DataType.U8, form, QuantizationInfo(120, (0.5,)))
    numbers = np.arange(np.prod(shape)).reshape(shape) % 250 if data is None else data
    weights = network.add_constant(info, numbers.astype(np.uint8))
    bias_info = TensorInfo(
        (1, 1, 1, outputs), DataType.S32, DataFormat.NHWC, QuantizationInfo(0, (0.01,))
    )
    bias = network.add_constant(bias_info, np.arange(outputs, dtype=np.int32).reshape(1, 1, 1, -1))
    return network.add(operation, source, bias, weights).operand


def lowered(network: Network, *outputs: Operand) -> list[Node]:
    for operand in outputs:
        network.add_output(operand)
    return lower(network, SIXTEEN_BANKS).sorted()


def works(nodes: list[Node]) -> list[type]:
    return [type(node.work) for node in nodes]


def alone(operation: Operation, info: TensorInfo) -> list[Node]:
    """Lower a network of one operation of one map."""
    network = Network()
    return lowered(network, network.add(operation, network.add_input(info)).operand)


def test_strided_convolution_with_relu_and_maximum() -> None:
    """The example of the package."""
    network = Network()
    x = network.add_input(image(64, 64, 32))
    y = weighted(network, Convolution(SAME, Stride(2, 2), OUT), x, (3, 3, 32, 64))
    z = network.add(Relu(110, 255), y).operand
    pooling = Pooling((2, 2), Stride(2, 2), Padding(), PoolingType.MAX)
    nodes = lowered(network, network.add(pooling, z).operand)
    assert [(type(node.work), node.shape, node.layout) for node in nodes] == [
        (Source, (1, 64, 64, 32), Layout.NHWC),
        (Relayout, (1, 64, 64, 32), Layout.NHWCB),
        (FusedPle, (1, 32, 32, 128), Layout.NHWCB),
        (Mce, (1, 32, 32, 64), Layout.NHWCB),
        (Clamp, (1, 32, 32, 64), Layout.NHWCB),
        (FusedPle, (1, 16, 16, 64), Layout.NHWCB),
        (Relayout, (1, 16, 16, 64), Layout.NHWC),
        (Sink, (1, 16, 16, 64), Layout.NHWC),
    ]
    work = nodes[3].doing(Mce)
    assert work.uninterleaved_input_shape == (1, 64, 64, 32)
    assert (work.stride, work.pad_top, work.pad_left) == (Stride(2, 2), 1, 1)
    assert work.bias.tolist() == list(range(64))
    assert nodes[4].work == Clamp(110, 255)
    kernels = [node.doing(FusedPle).kernel for node in (nodes[2], nodes[5])]
    assert kernels == [PleOperation.INTERLEAVE_2X2_2_2, PleOperation.MAXPOOL_2X2_2_2]
    # The convolution is of operations 1 to 3: bias, weights, itself.
    assert nodes[3].operation_ids == {1, 2, 3}


@pytest.mark.parametrize(
    ("channels", "srams", "interleaved"),
    [(32, 16, 128), (3, 16, 51), (3, 8, 27), (17, 16, 113), (16, 16, 64)],
)
def test_submaps_begin_in_bank_0(channels: int, srams: int, interleaved: int) -> None:
    assert interleaved_channels(channels, srams) == interleaved


def test_odd_planes_are_interleaved_rounded_up() -> None:
    network = Network()
    x = network.add_input(image(15, 7, 16))
    y = weighted(network, Convolution(SAME, Stride(2, 2), OUT), x, (3, 3, 16, 16))
    nodes = lowered(network, y)
    assert nodes[2].shape == (1, 8, 4, 64)


def test_convolution_of_stride_1_is_one_node() -> None:
    network = Network()
    x = network.add_input(image(8, 8, 16))
    y = weighted(network, Convolution(Padding(1, 1, 0, 2), Stride(), OUT), x, (3, 3, 16, 8))
    nodes = lowered(network, y)
    assert works(nodes) == [Source, Relayout, Mce, Relayout, Sink]
    work = nodes[2].doing(Mce)
    assert (work.operation, work.pad_top, work.pad_left) == (MceOperation.CONVOLUTION, 1, 0)


@pytest.mark.parametrize(
    ("shape", "operation", "form"),
    [
        ((3, 3, 16, 1), MceOperation.DEPTHWISE_CONVOLUTION, DataFormat.HWIM),
        # Of one channel, every output is a sum over one input: an ordinary convolution.
        ((3, 3, 1, 16), MceOperation.CONVOLUTION, DataFormat.HWIO),
    ],
)
def test_depthwise_convolution(shape: Shape, operation: MceOperation, form: DataFormat) -> None:
    network = Network()
    x = network.add_input(image(8, 8, shape[2]))
    (node,) = [
        node
        for node in lowered(
            network, weighted(network, DepthwiseConvolution(SAME, Stride(), OUT), x, shape)
        )
        if isinstance(node.work, Mce)
    ]
    work = node.doing(Mce)
    assert (work.operation, work.weights.format) == (operation, form)


@pytest.mark.parametrize(
    ("elements", "shape"),
    [
        (16, (1, 4, 4, 1)),
        (17, (1, 4, 4, 2)),
        (256, (1, 4, 4, 16)),
        # The second brick lies below the first, the third and fourth beside them.
        (257, (1, 8, 4, 16)),
        (513, (1, 8, 8, 16)),
        (1024, (1, 8, 8, 16)),
        (1025, (1, 8, 8, 17)),
        (1600, (1, 8, 8, 32)),
    ],
)
def test_bytes_read_as_bricks(elements: int, shape: Shape) -> None:
    assert linear_shape(elements) == shape


@given(st.integers(1, 20_000))
def test_bytes_read_as_bricks_are_all_there(elements: int) -> None:
    """Whole bricks of 4 x 4 x 16, those in the last brick group as far as its channels go."""
    _, height, width, channels = linear_shape(elements)
    groups, rest = divmod(channels, 16)
    bricks = height * width // 16
    last = rest * 16 if rest and bricks == 1 else rest and 1024
    held = groups * bricks * 256 + last
    assert held >= elements
    assert groups * 1024 <= elements + 1023


def test_matrix_product_reads_bytes_as_bricks_and_pads_with_the_zero_point() -> None:
    network = Network()
    x = network.add_input(TensorInfo((1, 1, 1, 1500), quantization=IN))
    y = weighted(network, FullyConnected(OUT), x, (1, 1, 1500, 10))
    nodes = lowered(network, y)
    # The input is NHWC already: brought into bricks and back, which rewrites drop.
    assert works(nodes) == [Source, Relayout, Relayout, Relabel, Mce, Relayout, Sink]
    relabel, product = nodes[3], nodes[4].doing(Mce)
    assert (relabel.shape, relabel.layout) == ((1, 8, 8, 32), Layout.NHWCB)
    assert product.weights.shape == product.weight_data.shape == (1, 1, 2048, 10)
    assert (product.weight_data[0, 0, 1500:] == 120).all()
    assert product.uninterleaved_input_shape == (1, 1, 1, 1500)


def test_transpose_convolution_turns_the_kernel_and_begins_at_each_element() -> None:
    network = Network()
    x = network.add_input(image(8, 8, 16))
    data = np.arange(3 * 3 * 16 * 8).reshape(3, 3, 16, 8) % 251
    operation = TransposeConvolution(Padding(0, 1, 0, 1), Stride(2, 2), OUT)
    nodes = lowered(network, weighted(network, operation, x, (3, 3, 16, 8), data))
    assert works(nodes) == [Source, Relayout, Mce, Relayout, Sink]
    work = nodes[2].doing(Mce)
    assert (work.upsample, work.upscale) == (Upsample.TRANSPOSE, 2)
    assert (work.pad_top, work.pad_left) == (2, 2)
    assert (work.weight_data == data[::-1, ::-1]).all()
    assert work.ratio == ShapeRatio(Ratio(2), Ratio(2))


def test_large_kernels_are_not_applied_where_planes_are_enlarged() -> None:
    network = Network()
    x = network.add_input(image(8, 8, 16))
    operation = TransposeConvolution(Padding(), Stride(2, 2), OUT)
    nodes = lowered(network, weighted(network, operation, x, (9, 9, 16, 16)))
    assert works(nodes) == [Source, Relayout, Mce, Mce, Relayout, Sink]
    enlarged, convolved = nodes[2].doing(Mce), nodes[3].doing(Mce)
    assert nodes[2].shape == (1, 16, 16, 16)
    assert (enlarged.upsample, convolved.upsample) == (Upsample.TRANSPOSE, Upsample.OFF)
    # The identity's real weights are 1.
    real = enlarged.weight_data * enlarged.weights.quantization.scale
    assert (real == 1).all()


def test_depth_to_space_picks_a_channel_for_each_place_of_a_block() -> None:
    nodes = alone(DepthToSpace(2), image(4, 4, 12))
    work = nodes[2].doing(Mce)
    picked = work.weight_data[::-1, ::-1] * work.weights.quantization.scale
    assert work.weights.shape == (2, 2, 12, 3)
    for row in range(2):
        for column in range(2):
            wanted = np.zeros((12, 3))
            wanted[(row * 2 + column) * 3 + np.arange(3), np.arange(3)] = 1
            assert (picked[row, column] == wanted).all()


@pytest.mark.parametrize(("height", "width"), [(16, 16), (15, 16)])
def test_resize_is_an_identity_that_enlarges(height: int, width: int) -> None:
    nodes = alone(Resize(ResizeAlgorithm.BILINEAR, height, width, OUT), image(8, 8, 16))
    work = nodes[2].doing(Mce)
    assert (work.upsample, work.upscale) == (Upsample.BILINEAR, 2)
    assert nodes[2].shape == (1, height, width, 16)


POOLS = {
    "2x2": (Pooling((2, 2), Stride(2, 2), Padding(), PoolingType.MAX), (8, 8, 16)),
    "1x1": (Pooling((1, 1), Stride(2, 2), Padding(), PoolingType.MAX), (8, 8, 16)),
    "3x3, even": (Pooling((3, 3), Stride(2, 2), Padding(0, 1, 0, 1), PoolingType.MAX), (8, 8, 16)),
    "3x3, odd": (Pooling((3, 3), Stride(2, 2), Padding(), PoolingType.MAX), (9, 9, 16)),
    "plane": (Pooling((7, 7), Stride(2, 2), Padding(), PoolingType.AVG), (7, 7, 16)),
}


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("2x2", PleOperation.MAXPOOL_2X2_2_2),
        ("1x1", PleOperation.DOWNSAMPLE_2X2),
        ("3x3, even", PleOperation.MAXPOOL_3X3_2_2_EVEN),
        ("3x3, odd", PleOperation.MAXPOOL_3X3_2_2_ODD),
        ("plane", PleOperation.MEAN_XY_7X7),
    ],
)
def test_poolings_that_ride_on_the_compute_engines(name: str, kernel: PleOperation) -> None:
    operation, extents = POOLS[name]
    found = pointwise_work(operation, (image(*extents),))
    assert isinstance(found, FusedPle)
    assert (found.kernel, found.ratio) == (kernel, ShapeRatio(Ratio(1, 2), Ratio(1, 2)))


def test_works_of_the_layer_engine() -> None:
    info, other = image(8, 8, 16), image(8, 8, 16, quantization=OUT)
    average = Pooling((3, 3), Stride(), SAME, PoolingType.AVG)
    assert pointwise_work(average, (info,)) == LonePle(PleOperation.AVGPOOL_3X3_1_1_UDMA)
    assert pointwise_work(Addition(IN), (info, info)) == LonePle(PleOperation.ADDITION)
    for sources in ((info, other), (other, other)):
        assert pointwise_work(Addition(IN), sources) == LonePle(PleOperation.ADDITION_RESCALE)
    assert pointwise_work(MeanXy(), (image(8, 8, 16),)) == FusedPle(PleOperation.MEAN_XY_8X8)
    assert pointwise_work(Sigmoid(), (info,)) == pointwise_work(Tanh(), (info,))
    assert pointwise_work(LeakyRelu(0.25, OUT), (info,)) == FusedPle(
        PleOperation.LEAKY_RELU, alpha=0.25
    )
    assert pointwise_work(Requantize(OUT), (info,)) == Requantization()


@pytest.mark.parametrize(
    ("axis", "extents", "layout"),
    [
        (3, ((8, 8, 16), (8, 8, 32)), Layout.NHWCB),
        (3, ((8, 8, 16), (8, 8, 8)), Layout.NHWC),
        (1, ((8, 8, 8), (16, 8, 8)), Layout.NHWCB),
        (1, ((4, 8, 16), (4, 8, 16)), Layout.NHWC),
        (2, ((8, 8, 3), (8, 24, 3)), Layout.NHWCB),
    ],
)
def test_concatenation_is_in_bricks_where_parts_are_whole_brick_groups(
    axis: int, extents: tuple[tuple[int, int, int], ...], layout: Layout
) -> None:
    network = Network()
    parts = [network.add_input(image(*row)) for row in extents]
    nodes = lowered(network, network.add(Concatenation(axis, IN), *parts).operand)
    (whole,) = [node for node in nodes if isinstance(node.work, Concat)]
    assert whole.layout is layout
    assert all(isinstance(part.work, Copy) and part.layout is layout for part in whole.inputs)
    assert [part.shape[axis] for part in whole.inputs] == [row[axis - 1] for row in extents]


def test_only_parts_of_another_quantisation_are_requantised() -> None:
    network = Network()
    first, second = (
        network.add_input(image(8, 8, 16)),
        network.add_input(image(8, 8, 16, quantization=OUT)),
    )
    nodes = lowered(network, network.add(Concatenation(3, IN), first, second).operand)
    (whole,) = [node for node in nodes if isinstance(node.work, Concat)]
    before = [part.source for part in whole.inputs]
    assert [type(node.work) for node in before] == [Relayout, Requantization]
    assert before[1].quantization == IN


@pytest.mark.parametrize(("sizes", "layout"), [((16, 32), Layout.NHWCB), ((3, 45), Layout.NHWC)])
def test_parts_of_a_split_begin_where_the_last_ended(
    sizes: tuple[int, int], layout: Layout
) -> None:
    network = Network()
    made = network.add(Split(3, sizes), network.add_input(image(8, 8, 48)))
    nodes = lowered(network, *made.outputs)
    parts = [node for node in nodes if isinstance(node.work, Extract)]
    assert [part.doing(Extract).offset for part in parts] == [(0, 0, 0, 0), (0, 0, 0, sizes[0])]
    assert [part.shape for part in parts] == [(1, 8, 8, size) for size in sizes]
    assert {part.layout for part in parts} == {layout}


def test_reshape_is_of_bytes_in_nhwc() -> None:
    nodes = alone(Reshape((1, 4, 16, 16)), image(8, 8, 16))
    assert works(nodes) == [Source, *[Relayout] * 2, Relabel, *[Relayout] * 2, Sink]
    relabel = nodes[3]
    assert (relabel.source.layout, relabel.layout) == (Layout.NHWC, Layout.NHWC)


def test_strict_precision_gives_every_requantisation_a_stage() -> None:
    network = Network()
    network.add_output(network.add(Requantize(OUT), network.add_input(image(8, 8, 16))).operand)
    plain, strict = (
        lower(network, SIXTEEN_BANKS, strict_precision=flag).sorted() for flag in (False, True)
    )
    assert works(plain) == [Source, Relayout, Requantization, Relayout, Sink]
    assert works(strict) == [Source, Relayout, Mce, Requantization, Relayout, Sink]
    identity = strict[2].doing(Mce)
    assert (identity.weight_data * identity.weights.quantization.scale == 1).all()


def test_a_constant_comes_with_its_first_use() -> None:
    network = Network()
    data = np.zeros((1, 8, 8, 16), np.uint8)
    stored = network.add_constant(image(8, 8, 16), data)
    x = network.add_input(image(8, 8, 16))
    nodes = lowered(network, network.add(Addition(IN), x, stored).operand)
    (node,) = [node for node in nodes if isinstance(node.work, Stored)]
    assert node.doing(Stored).data is data
    assert [type(user.work) for user in node.users] == [LonePle]


def test_operations_without_a_data_path_are_refused() -> None:
    with pytest.raises(MizzenError, match=r"E970.*operation 1 must be one that Ethos-N78 can run"):
        alone(Transpose((0, 2, 1, 3)), image(8, 8, 16))


def test_weights_must_be_constants() -> None:
    network = Network()
    x = network.add_input(image(8, 8, 16))
    shape: Shape = (1, 1, 16, 16)
    weights = network.add_input(TensorInfo(shape, DataType.U8, DataFormat.HWIO))
    bias = network.add_constant(
        TensorInfo((1, 1, 1, 16), DataType.S32), np.zeros((1, 1, 1, 16), np.int32)
    )
    network.add(Convolution(Padding(), Stride(), OUT), x, bias, weights)
    with pytest.raises(MizzenError, match=r"E974.*operation 1 \(Input\)"):
        lower(network, SIXTEEN_BANKS)
