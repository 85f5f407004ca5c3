"""A quantised PyTorch model: channels first become channels last, and all of it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torchao", reason="torchao is not installed")

from mizzen.compiler.ethos_u.regions import WINDOW_LIMITS
from mizzen.compiler.torch.call import Call
from mizzen.compiler.torch.exported import export
from mizzen.frontends.torch.int_lowering.int_lower import Lowered, lower
from mizzen.frontends.torch.narrowing import read
from mizzen.graph import Operation
from mizzen.partition import Device, extract, partition
from mizzen.quantize import (
    EthosUQuantizer,
    get_symmetric_quantization_config,
    without_import_messages,
)
from mizzen.reference import evaluate
from mizzen.targets.ethos_n.patterns import Covering, generate, legality, prepare
from mizzen.targets.ethos_n.reference import evaluate as evaluate_network

from .graphs import FOUR_TOPS

if TYPE_CHECKING:
    import torch


def model() -> torch.nn.Module:
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 16, 3, 2, 1)
            self.norm = nn.BatchNorm2d(16)
            self.deep = nn.Conv2d(16, 16, 3, 1, 1, groups=16)
            self.point = nn.Conv2d(16, 32, 1)
            self.short = nn.Conv2d(16, 32, 1)
            self.last = nn.Linear(32, 10)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.norm(self.first(image)))
            y = self.point(torch.nn.functional.relu6(self.deep(x))) + self.short(x)
            y = torch.nn.functional.max_pool2d(torch.sigmoid(y), 2)
            a, b = torch.chunk(y, 2, 1)
            y = torch.cat([b * 0.5, torch.nn.functional.leaky_relu(a, 0.1)], 1)
            return self.last(y.mean((2, 3)))

    torch.manual_seed(0)
    return Network().eval()


def lowered() -> Lowered:
    import torch

    with without_import_messages():
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    example = (torch.randn(1, 3, 28, 28, generator=torch.Generator().manual_seed(1)),)
    quantizer = EthosUQuantizer("ethos-u55-128")
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(
        export(model(), Call(example), "net").module(check_guards=False), quantizer
    )
    prepared(*example)
    return lower(read(export(convert_pt2e(prepared), Call(example), "net"), "net"), WINDOW_LIMITS)


def test_a_network() -> None:
    graph = lowered().graph
    apart = prepare(graph)
    covering = Covering(graph, FOUR_TOPS)
    legal = legality(covering)
    found = partition(graph, legal, edge=_is_edge)
    left = {row.kind for row in graph.sorted() if legal(row)}
    assert left <= {"CUSTOM", "TRANSPOSE", "RESHAPE", "CONST", "CONST_SHAPE"}
    assert len(apart) == 2  # the TRANSPOSE of the input, the RESHAPE of the output
    assert {row.name.removeprefix("ethos-n.") for row in covering.composites} >= {
        "qnn_conv2d", "qnn_add", "qnn_sigmoid", "qnn_leaky_relu", "split", "qnn.concatenate",
        "nn.max_pool2d",
    }  # fmt: skip
    (region,) = [row for row in found.regions if row.device is Device.NPU]
    part = extract(graph, region.groups)
    generated = generate(part.graph, FOUR_TOPS)
    random = np.random.default_rng(2)
    (given,) = [random.integers(-128, 128, v.shape, np.int8) for v in part.inputs]
    (wanted,) = evaluate(part.graph, [given])
    (result,) = evaluate_network(generated.network, [given])
    # A step of each of nine layers one after the other; most results have none.
    difference = np.abs(result.reshape(wanted.shape).astype(int) - wanted)
    assert difference.max() <= 3
    assert len(np.unique(wanted)) > 5


def _is_edge(operation: Operation) -> bool:
    return operation.kind in ("CUSTOM", "TRANSPOSE")
