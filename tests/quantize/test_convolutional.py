"""Convolutional networks: what is fused, what shares a scale, and that nothing stays float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from mizzen.quantize import (
    EthosUQuantizer,
    get_symmetric_a8w4_quantization_config,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
    get_uint8_io_quantization_config,
)

IMAGE = (1, 3, 12, 12)


class Residual(nn.Module):
    """Convolutions with batch normalization, a sum, a concatenation and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6())
        self.body = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Conv2d(16, 8, 1)
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(8, 4), nn.Softmax(-1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        y = torch.relu(self.body(x) + x)
        return self.classifier(self.head(torch.cat([x, nn.functional.max_pool2d(y, 1)], 1)))


def test_no_operator_stays_float(quantize: Callable[..., Any]) -> None:
    flow = quantize(Residual(), torch.randn(IMAGE))
    assert flow.float_islands() == []
    assert flow.quantizer.report() == []
    assert not [name for name in flow.operators() if "batch_norm" in name or "dropout" in name]


def test_the_result_is_close_to_the_float_networks(quantize: Callable[..., Any]) -> None:
    x = torch.randn(IMAGE)
    # 8 bits give about 6 dB each, and six layers' errors add: well above a scale gone wrong.
    assert quantize(Residual(), x).noise(x) > 25


def test_concatenated_values_share_a_scale_with_everything_that_moves_them(
    quantize: Callable[..., Any],
) -> None:
    flow = quantize(Residual(), torch.randn(IMAGE))
    nodes = {node.name: node for node in flow.converted.graph.nodes}
    parts = nodes["cat"].args[0]
    result = next(iter(nodes["cat"].users))
    assert {part.args[1:3] for part in parts} == {result.args[1:3]}


def test_nothing_is_quantized_between_a_convolution_and_its_activation(
    quantize: Callable[..., Any],
) -> None:
    flow = quantize(Residual(), torch.randn(IMAGE))
    nodes = {node.name: node for node in flow.converted.graph.nodes}
    assert str(nodes["hardtanh"].args[0].target) == "aten.conv2d.default"
    assert str(nodes["relu"].args[0].target) == "aten.add.Tensor"


def test_softmax_has_the_range_from_0_to_1(quantize: Callable[..., Any]) -> None:
    scale, zero_point, _ = quantize(Residual(), torch.randn(IMAGE)).quantizations()[-1]
    assert (scale, zero_point) == (1 / 256, -128)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.Sigmoid(), (1 / 256, -128)),
        (nn.Hardsigmoid(), (1 / 256, -128)),
        (nn.Tanh(), (1 / 128, 0)),
    ],
)
def test_functions_with_a_known_range_are_not_observed(
    module: nn.Module, expected: tuple[float, int], quantize: Callable[..., Any]
) -> None:
    flow = quantize(module, torch.randn(2, 5))
    assert flow.quantizations()[-1][:2] == expected


def test_weights_and_biases_have_a_scale_for_each_channel(quantize: Callable[..., Any]) -> None:
    flow = quantize(nn.Conv2d(3, 5, 3), torch.randn(IMAGE))
    convolution = next(n for n in flow.converted.graph.nodes if "conv2d" in str(n.target))
    x, weight, bias = convolution.args[:3]
    scales, bias_scales = (
        getattr(flow.converted, operand.args[1].target) for operand in (weight, bias)
    )
    assert weight.args[3:] == (0, -127, 127, torch.int8)
    assert scales.shape == (5,)
    assert torch.equal(bias_scales, scales * x.args[1])


def test_a_transposed_convolutions_channels_are_its_weights_second_axis(
    quantize: Callable[..., Any],
) -> None:
    flow = quantize(nn.ConvTranspose2d(3, 5, 2, stride=2), torch.randn(IMAGE))
    convolution = next(n for n in flow.converted.graph.nodes if "conv_transpose" in str(n.target))
    assert convolution.args[1].args[3] == 1
    assert flow.noise(torch.randn(IMAGE)) > 30


def test_a_layer_used_twice_has_a_bias_scale_for_each_use(quantize: Callable[..., Any]) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(10 * torch.relu(self.layer(x)))

    x = torch.randn(1, 6)
    flow = quantize(Twice(), x)
    layers = [n for n in flow.converted.graph.nodes if "linear" in str(n.target)]
    scales = [getattr(flow.converted, layer.args[2].args[1].target) for layer in layers]
    assert not torch.equal(*scales)
    assert flow.noise(x) > 25


def test_batch_normalization_alone_becomes_arithmetic(quantize: Callable[..., Any]) -> None:
    normalization: Any = nn.BatchNorm2d(3)
    normalization.running_mean.uniform_(-1, 1)
    normalization.running_var.uniform_(0.5, 2)
    network = nn.Sequential(nn.ReLU(), normalization, nn.Conv2d(3, 4, 1))
    x = torch.randn(IMAGE)
    flow = quantize(network, x)
    assert flow.operators()[:3] == ["aten.relu.default", "aten.mul.Tensor", "aten.add.Tensor"]
    assert flow.noise(x) > 25


def test_16_bit_activations_are_symmetric_and_precise(quantize: Callable[..., Any]) -> None:
    quantizer = EthosUQuantizer("ethos-u85-256")
    quantizer.set_global(get_symmetric_a16w8_quantization_config())
    x = torch.randn(IMAGE)
    flow = quantize(Residual(), x, quantizer=quantizer)
    assert {(zero, kind) for _, zero, kind in flow.quantizations()} == {(0, torch.int16)}
    assert flow.noise(x) > 40


def test_limits_of_weights_are_honoured(quantize: Callable[..., Any]) -> None:
    for config in (
        get_symmetric_a8w4_quantization_config(),
        get_symmetric_a16w8_quantization_config(weight_qmin=-7, weight_qmax=7),
    ):
        quantizer = EthosUQuantizer("ethos-u85-256").set_global(config)
        flow = quantize(nn.Linear(8, 4), torch.randn(1, 8), quantizer=quantizer)
        assert flow.converted._frozen_param0.abs().max() == 7


def test_small_ranges_of_16_bits_keep_their_steps(quantize: Callable[..., Any]) -> None:
    quantizer = EthosUQuantizer("ethos-u85-256").set_global(
        get_symmetric_a16w8_quantization_config()
    )
    flow = quantize(nn.ReLU(), torch.full((1, 4), 0.01), quantizer=quantizer)
    # The largest input is 0.01 or a normal number above; without a floor, it is step 32767.
    assert flow.quantizations()[0][0] < 2**-12


def test_bytes_at_the_boundary(quantize: Callable[..., Any]) -> None:
    quantizer = EthosUQuantizer("ethos-u55-128")
    quantizer.set_global(get_symmetric_quantization_config())
    quantizer.set_io(get_uint8_io_quantization_config())
    x = torch.randn(IMAGE)
    flow = quantize(Residual(), x, quantizer=quantizer)
    kinds = [kind for *_, kind in flow.quantizations()]
    assert (kinds[0], kinds[-1]) == (torch.uint8, torch.uint8)
    assert kinds.count(torch.uint8) == 2
    assert flow.noise(x) > 25


def test_a_name_set_after_a_type_goes_before_it_and_both_before_the_global(
    quantize: Callable[..., Any],
) -> None:
    quantizer = EthosUQuantizer("ethos-u55-128")
    quantizer.set_module_type(nn.Conv2d, None)
    quantizer.set_module_name("0", get_symmetric_a16w8_quantization_config())
    quantizer.set_global(get_symmetric_quantization_config())
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 5, 1), nn.Flatten(), nn.Linear(720, 2))
    flow = quantize(network, torch.randn(IMAGE), quantizer=quantizer)
    kinds = [kind for *_, kind in flow.quantizations()]
    assert kinds[:2] == [torch.int16, torch.int16]
    assert torch.int8 in kinds[2:]
    (stays,) = quantizer.report()
    assert stays.reason == "set_module_type(Conv2d, None) keeps it in floating point"
    assert (stays.operator, stays.origin.module) == ("conv2d", "1")


def test_a_program_with_or_without_guards_is_the_same(quantize: Callable[..., Any]) -> None:
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    program = torch.export.export(Residual().eval(), (torch.randn(IMAGE),))
    quantizer = EthosUQuantizer("ethos-u55-128").set_global(get_symmetric_quantization_config())
    with_guards = prepare_pt2e(program.module(), quantizer)
    without = prepare_pt2e(program.module(check_guards=False), quantizer)
    assert str(with_guards.graph) == str(without.graph)
