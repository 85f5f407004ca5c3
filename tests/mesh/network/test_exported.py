"""Networks from PyTorch programs: the integers are those of the quantised program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.mesh.emission import emit
from mizzen.mesh.execution import compare
from mizzen.mesh.machine import find_machine
from mizzen.mesh.mapping import MappingOptions, map_network
from mizzen.mesh.network import LayerKind
from mizzen.mesh.network.exported import network_of_exported
from mizzen.mesh.program import Compute, check, parse_program, program_bytes
from mizzen.reference import evaluate

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

IMAGES = 3


class Small(torch.nn.Module):
    """Convolutions, a sum, and a flattened feature map before the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.third = torch.nn.Conv2d(8, 8, 1)
        self.last = torch.nn.Linear(8 * 8 * 8, 10)

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.first(x))
        y = self.third(self.second(y)) + y
        return torch.softmax(self.last(torch.flatten(torch.relu(y), 1)), 1)


class Cropping(torch.nn.Module):
    """A stride that leaves the last row and column over, so that they are cropped."""

    def __init__(self) -> None:
        super().__init__()
        self.only = torch.nn.Conv2d(3, 4, 3, stride=2)

    def forward(self, x: Any) -> Any:
        return self.only(x)


class Rows(torch.nn.Module):
    """A softmax of rows, and a sum of them."""

    def forward(self, x: Any) -> Any:
        return torch.softmax(x, -1).mean(-1, keepdim=True)


class Sorting(torch.nn.Module):
    """Something that no integers do."""

    def forward(self, x: Any) -> Any:
        return torch.sort(x)[0]


def quantised(model: Any, example: Any) -> tuple[Any, Any]:
    """Return the converted model and its exported program."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from mizzen.quantize import EthosUQuantizer
    from mizzen.quantize.configuration import get_symmetric_quantization_config
    from mizzen.torch import EthosUCompileSpec

    quantizer = EthosUQuantizer(EthosUCompileSpec("ethos-u55-128"))
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model.eval(), (example,)).module(), quantizer)
    prepared(example)
    converted = convert_pt2e(prepared)
    return converted, torch.export.export(converted, (example,))


def test_a_program_is_the_same_network() -> None:
    torch.manual_seed(0)
    converted, exported = quantised(Small(), torch.randn(1, 3, 8, 8))
    network = network_of_exported(exported, "small")
    assert network.graph is not None
    assert network.edges is not None
    taken, given = (network.values[index].quantization for index in (0, network.outputs[0]))
    assert taken is not None
    assert given is not None
    images = np.random.default_rng(0).normal(size=(IMAGES, 1, 3, 8, 8)).astype(np.float32)
    steps = np.round(images / taken.scales[0]) + taken.zero_points[0]
    (moved,) = network.edges.take([np.clip(steps, -128, 127).astype(np.int8)])
    found = np.stack([evaluate(network.graph, [image])[0] for image in moved])
    (outputs,) = network.edges.give([found])
    real = (outputs.astype(np.float64) - given.zero_points[0]) * given.scales[0]
    expected = np.stack([converted(torch.tensor(image)).detach().numpy() for image in images])
    assert np.abs(real - expected).max() < given.scales[0] / 2


def test_a_flattened_map_is_the_window_of_a_convolution() -> None:
    _, exported = quantised(Small(), torch.randn(1, 3, 8, 8))
    network = network_of_exported(exported, "small")
    windows = [layer.window.kernel for layer in network.layers if layer.window is not None]
    assert windows == [(3, 3), (3, 3), (1, 1), (8, 8)]
    (joined,) = [layer for layer in network.layers if len(layer.inputs) == 2 and layer.window]
    assert joined.kind is LayerKind.CONVOLUTION


def test_an_operator_without_integers_is_named() -> None:
    _, exported = quantised(Sorting(), torch.randn(1, 16))
    with pytest.raises(MizzenError, match=r"E506.*integer form, and .*sort.* has none"):
        network_of_exported(exported, "sorting")


def test_an_input_that_is_cropped_is_turned_at_the_edge() -> None:
    converted, exported = quantised(Cropping(), torch.randn(1, 3, 8, 8))
    network = network_of_exported(exported, "cropping")
    assert LayerKind.GENERAL not in {layer.kind for layer in network.layers}
    assert network.graph is not None
    assert network.edges is not None
    image = np.random.default_rng(0).normal(size=(1, 1, 3, 8, 8)).astype(np.float32)
    edge = network.edges.inputs[0]
    assert edge.scale is not None
    steps = np.clip(np.round(image / edge.scale) + edge.zero_point, -128, 127).astype(np.int8)
    (moved,) = network.edges.take([steps])
    (found,) = network.edges.give([evaluate(network.graph, [moved[0]])[0][None]])
    given = network.edges.outputs[0]
    assert given.scale is not None
    real = (found[0].astype(np.float64) - given.zero_point) * given.scale
    expected = converted(torch.tensor(image[0])).detach().numpy()
    assert np.abs(real - expected).max() < given.scale / 2


def test_a_softmax_is_split_by_rows_and_stays_exact() -> None:
    _, exported = quantised(Rows(), torch.randn(1, 12, 16))
    network = network_of_exported(exported, "rows")
    reductions = [layer for layer in network.layers if layer.kind is LayerKind.REDUCTION]
    assert reductions
    program = emit(map_network(network, find_machine("grid4x4"), MappingOptions(replicas=1)))
    assert not check(program)
    tiles = [
        row.kernel
        for element in program.elements
        for row in element.instructions
        if isinstance(row, Compute) and network.layers[row.kernel.layer] in reductions
    ]
    assert len(tiles) > len(reductions)
    random = np.random.default_rng(0)
    shape = network.tensors[network.inputs[0]].shape
    images = random.integers(-128, 128, (IMAGES, *shape)).astype(np.int8)
    read = parse_program(program_bytes(program), "rows.mesh")
    assert not [row for row in compare(read, [images]) if row.differing]
