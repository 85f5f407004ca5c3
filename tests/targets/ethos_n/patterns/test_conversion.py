"""Products and sums with a constant: what they are converted to, and that they stay what they are.

The cases are those of Apache TVM's `test_convert_equivalents.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.graph import Value
from mizzen.targets.ethos_n.network import Constant, ReinterpretQuantization
from mizzen.targets.ethos_n.tensors import DataType

from .graphs import Net, becoming, differences, kinds, names, refusals, whole

X = (0.05, 3)


def product(net: Net, constant: Value, q: tuple[float, int], *, reverse: bool = False) -> Net:
    x = net.input(1, 4, 6, 16, q=X)
    pair = (constant, x) if reverse else (x, constant)
    return net.outputs(net.multiplied(*pair, q))


def total(
    net: Net, constant: Value, q: tuple[float, int], *, kind: str = "ADD", reverse: bool = False
) -> Net:
    x = net.input(1, 4, 6, 16, q=X)
    pair = (constant, x) if reverse else (x, constant)
    return net.outputs(net.combined(kind, *pair, q))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1, 16), (16,)])
def test_product_with_a_number_for_each_channel(shape: tuple[int, ...], reverse: bool) -> None:
    net = Net()
    if len(shape) != 4:
        shape = (1, 1, 1, *shape)  # front-ends give constants the rank that TOSA wants
    constant = net.constant(net.integers(16), shape, (0.02, -7))
    product(net, constant, (0.08, 5), reverse=reverse)
    assert names(net.graph) == ["qnn_mul_to_depthwise"]
    assert becoming(net.graph) == ["qnn_conv2d"]
    assert kinds(whole(net)) == ["DepthwiseConvolution"]
    assert max(differences(net)) <= 1


def test_product_with_one_number() -> None:
    net = Net()
    product(net, net.constant([-90], (1, 1, 1, 1), (0.011, 30)), (0.06, 5))
    assert names(net.graph) == ["qnn_mul_to_depthwise"]
    assert max(differences(net)) <= 1


@pytest.mark.parametrize("reverse", [False, True])
def test_product_that_only_reads_numbers_otherwise(reverse: bool) -> None:
    net = Net()
    constant = net.constant([127], (1, 1, 1, 1), (0.5 / 255, -128))
    product(net, constant, (0.05 * 0.5 * 1.0002, 3), reverse=reverse)
    assert names(net.graph) == ["qnn_mul_to_reinterpret_quantize"]
    assert becoming(net.graph) == ["qnn_reinterpret_quantize"]
    assert kinds(whole(net)) == ["ReinterpretQuantization"]
    assert differences(net) == [0]


def test_product_is_no_reinterpretation_where_a_number_would_change() -> None:
    """TVM takes scales for the same that differ by 0.004, though numbers differ by 20 %."""
    net = Net()
    constant = net.constant([1], (1, 1, 1, 1), (0.4, 0))
    product(net, constant, (0.024, 3))
    assert names(net.graph) == ["qnn_mul_to_depthwise"]
    assert max(differences(net)) <= 1


def test_product_with_as_many_numbers_as_the_tensor_has() -> None:
    net = Net()
    product(net, net.constant(net.integers(4 * 6 * 16), (1, 4, 6, 16), (0.02, 0)), (0.1, 0))
    assert names(net.graph) == []
    assert refusals(net.graph) == [
        "constant shape=[1, 4, 6, 16], constant must be one number or 16, one for each channel"
    ]


def test_product_with_numbers_along_another_axis() -> None:
    net = Net()
    x = net.input(1, 16, 6, 16, q=X)
    constant = net.constant(net.integers(16), (1, 16, 1, 1), (0.02, 0))
    net.outputs(net.multiplied(x, constant, (0.1, 0)))
    assert refusals(net.graph) == [
        "constant shape=[1, 16, 1, 1], constant must be one number or 16, one for each channel"
    ]


def test_constant_that_is_larger_than_the_tensor() -> None:
    net = Net()
    x = net.input(1, 1, 1, 16, q=X)
    constant = net.constant(net.integers(64), (1, 2, 2, 16), (0.02, 0))
    net.outputs(net.multiplied(x, constant, (0.1, 0)))
    assert refusals(net.graph) == ["input shape=[1, 1, 1, 16], input shape must = [1, 2, 2, 16]"]


@pytest.mark.parametrize("kind", ["ADD", "SUB"])
@pytest.mark.parametrize("numbers", [16, 1])
def test_sum_with_numbers_for_channels(kind: str, numbers: int) -> None:
    net = Net()
    constant = net.constant(net.integers(numbers), (1, 1, 1, numbers), (0.04, -7))
    total(net, constant, (0.09, 5), kind=kind)
    assert names(net.graph) == ["qnn_add_to_depthwise"]
    assert becoming(net.graph) == ["qnn_conv2d"]
    # The bias is rounded to steps of input scale / r, which are finer than the output's.
    assert max(differences(net)) <= 1


def test_the_kernel_of_ones_is_tvms() -> None:
    net = Net()
    total(net, net.constant(net.integers(16), (1, 1, 1, 16), (0.04, -7)), (0.09, 5))
    constants = [node for node in whole(net).network if isinstance(node.operation, Constant)]
    bias, ones = constants
    number = round(2 / (1 + 1 / 255))
    assert ones.data is not None
    assert np.unique(ones.data).tolist() == [number]
    assert ones.operand.info.data_type is DataType.U8
    assert ones.operand.info.quantization.scales == (1 / number,)
    assert bias.operand.info.shape == (1, 1, 1, 16)


def test_sum_with_coarser_output_has_the_largest_kernel() -> None:
    """A number over 255 has no place in 8 bits, whatever the scales are."""
    net = Net()
    x = net.input(1, 4, 6, 16, q=(60.0, 3))
    constant = net.constant([9], (1, 1, 1, 1), (0.001, 0))
    net.outputs(net.combined("ADD", x, constant, (0.01, 0)))
    covered = whole(net).network
    ones = [node for node in covered if isinstance(node.operation, Constant)][1]
    assert ones.data is not None
    assert ones.data.max() == 255


@pytest.mark.parametrize("reverse", [False, True])
def test_sum_that_only_moves_the_zero_point(reverse: bool) -> None:
    net = Net()
    constant = net.constant([40], (1, 1, 1, 1), (0.05, 0))
    total(net, constant, (0.05, -37), reverse=reverse)
    assert names(net.graph) == ["qnn_add_to_reinterpret_quantize"]
    (node,) = [n for n in whole(net).network if isinstance(n.operation, ReinterpretQuantization)]
    assert node.operand.info.quantization.zero_point == -37
    assert differences(net) == [0]


def test_sum_whose_numbers_change() -> None:
    net = Net()
    total(net, net.constant([40], (1, 1, 1, 1), (0.05, 0)), (0.05, -35))
    assert names(net.graph) == ["qnn_add_to_depthwise"]
    assert max(differences(net)) <= 1


def test_constant_minus_tensor() -> None:
    net = Net()
    total(net, net.constant([40], (1, 1, 1, 1), (0.05, 0)), (0.05, -35), kind="SUB", reverse=True)
    assert names(net.graph) == []
    assert refusals(net.graph) == ["it subtracts a tensor, what is subtracted must be a constant"]


def test_product_of_two_tensors() -> None:
    net = Net()
    x, y = net.input(1, 4, 4, 16), net.input(1, 4, 4, 16)
    net.outputs(net.multiplied(x, y, (0.1, 0)))
    assert refusals(net.graph) == ["it multiplies two tensors, one of the two must be a constant"]


def test_rank_of_two() -> None:
    """The last axis is the channels."""
    net = Net()
    x = net.input(1, 48, q=X)
    constant = net.constant(net.integers(48), (1, 48), (0.02, -7))
    net.outputs(net.multiplied(x, constant, (0.08, 5)))
    assert names(net.graph) == ["qnn_mul_to_depthwise"]
    assert max(differences(net)) <= 1
