"""Configurations of single nodes, and other quantizers beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import HistogramObserver
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
)

from mizzen.diagnostics import MizzenError
from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

U55 = "ethos-u55-128"
CONFIG = get_symmetric_quantization_config()


class Two(nn.Module):
    """Two linear layers, and a softmax that is taken apart."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


EXAMPLE = (torch.ones(1, 8),)


def quantized(choose: Callable[[EthosUQuantizer], object]) -> tuple[EthosUQuantizer, set[str]]:
    """Return the names of operators whose results become integers."""
    quantizer = EthosUQuantizer(U55)
    choose(quantizer)
    program = torch.export.export(Two().eval(), EXAMPLE).module(check_guards=False)
    prepared = prepare_pt2e(program, quantizer)
    prepared(*EXAMPLE)
    converted = convert_pt2e(prepared)
    found = {
        node.args[0].name
        for node in converted.graph.nodes
        if str(node.target).endswith("quantize_per_tensor.default")
        and "dequantize" not in str(node.target)
    }
    return quantizer, found


def test_a_node_of_a_name_has_its_own_configuration() -> None:
    quantizer, _ = quantized(
        lambda quantizer: quantizer.set_global(CONFIG).set_node_name("linear_1", None)
    )
    reasons = {row.operator: row.reason for row in quantizer.report()}
    assert reasons == {"linear": "the configuration of this node keeps it in floating point"}


def test_what_is_made_of_a_node_keeps_its_selection() -> None:
    """A softmax is several operators by the time it is annotated."""
    quantizer, found = quantized(
        lambda quantizer: quantizer.set_global(CONFIG).set_node_name("softmax", None)
    )
    assert "relu" in found
    assert {row.reason for row in quantizer.report()} == {
        "the configuration of this node keeps it in floating point"
    }


def test_all_calls_of_an_operator_are_selected_and_nothing_else() -> None:
    _, found = quantized(
        lambda quantizer: quantizer.set_node_target(torch.ops.aten.linear.default, CONFIG)
    )
    assert {"linear_1"} <= found
    assert not any(name.startswith(("softmax", "exp")) for name in found)


class First:
    """Finds the first operator."""

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        yield next(node for node in model.graph.nodes if node.op == "call_function")


def test_a_finder_of_the_users_own_selects() -> None:
    _, found = quantized(lambda quantizer: quantizer.set_node_finder(CONFIG, First()))
    assert found == {"x", "linear"}


def test_the_last_that_finds_a_node_decides() -> None:
    _, found = quantized(
        lambda quantizer: (
            quantizer.set_node_finder(CONFIG, First())
            .set_node_target(torch.ops.aten.linear.default, None)
            .set_node_target(torch.ops.aten.relu.default, CONFIG)
        )
    )
    assert found == {"linear", "relu"}


def test_of_names_types_and_nodes_the_last_that_was_set_decides() -> None:
    """As ExecuTorch's composable quantizer has it."""
    _, later = quantized(
        lambda quantizer: (
            quantizer.set_global(CONFIG)
            .set_module_type(nn.Linear, None)
            .set_node_name(["linear", "relu"], CONFIG)
        )
    )
    _, earlier = quantized(
        lambda quantizer: (
            quantizer.set_global(CONFIG)
            .set_node_name(["linear", "relu"], CONFIG)
            .set_module_type(nn.Linear, None)
        )
    )
    assert "x" in later
    assert "x" not in earlier


@pytest.mark.parametrize(
    ("choose", "text"),
    [
        (
            partial(EthosUQuantizer.set_module_name, module_name="frist"),
            "error[E881]: set_module_name must name a module of the program, and none is called "
            "'frist'\n  help did you mean 'first'?",
        ),
        (
            partial(EthosUQuantizer.set_node_name, node_name="conv2d"),
            "error[E881]: set_node_name must name a node of the program, and none is called "
            "'conv2d'\n  help there are linear, linear_1, relu, softmax",
        ),
    ],
)
def test_a_name_that_nothing_has_is_refused(choose: Any, text: str) -> None:
    with pytest.raises(MizzenError) as caught:
        quantized(partial(choose, quantization_config=CONFIG))
    assert str(caught.value) == text


class Coarse(Quantizer):
    """Another quantizer: four bits for what relu gives."""

    def annotate(self, model: GraphModule) -> GraphModule:
        spec = QuantizationSpec(
            torch.int8, HistogramObserver, -8, 7, torch.per_tensor_affine, is_dynamic=False
        )
        for node in model.graph.nodes:
            if str(node.target) == "aten.relu.default":
                node.meta["quantization_annotation"] = QuantizationAnnotation(
                    output_qspec=spec, _annotated=True
                )
        return model

    def validate(self, model: GraphModule) -> None:
        pass


def test_what_another_quantizer_annotates_is_left_as_it_says() -> None:
    quantizer = EthosUQuantizer(compile_spec=U55, use_composable_quantizer=True)
    quantizer.set_global(quantization_config=CONFIG).add_quantizer(Coarse())
    program = torch.export.export(Two().eval(), EXAMPLE).module(check_guards=False)
    prepared = prepare_pt2e(program, quantizer)
    prepared(*EXAMPLE)
    ranges = [
        node.args[3:5]
        for node in convert_pt2e(prepared).graph.nodes
        if str(node.target) == "quantized_decomposed.quantize_per_tensor.default"
        and node.args[0].name == "relu"
    ]
    assert (-8, 7) in ranges
