"""The zoo in the floating-point profile: Arm's reference model against eager PyTorch."""

from __future__ import annotations

import copy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("sklearn", reason="scikit-learn, whose digits are trained on, is not installed")

import torch

from mizzen.compiler.torch.call import Call
from mizzen.compiler.torch.exported import export
from mizzen.frontends.tosa import read as read_tosa
from mizzen.torch import to_tosa

from .accuracy import Array, network_bound, rms

ZOO = Path(__file__).resolve().parents[4] / "examples"
if str(ZOO) not in sys.path:
    sys.path.insert(0, str(ZOO))

ZOO_PACKAGE: Any = import_module("zoo")
NETWORKS: dict[str, Any] = ZOO_PACKAGE.NETWORKS
SMALL = ("digits", "ds_cnn", "encoder", "tcn")
INPUTS = 2


def outputs_of(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[Array]:
    with torch.no_grad():
        found = module(*inputs)
    return [row.numpy() for row in (found if isinstance(found, (tuple, list)) else (found,))]


def check(name: str, oracle: Any, inputs: int) -> None:
    entry = NETWORKS[name]
    module = entry.build()
    double = copy.deepcopy(module).double()
    graph = read_tosa(to_tosa(export(module, Call(entry.example_inputs()), name), name, "FP"), name)
    for seed in range(inputs):
        given = (entry.inputs(1, seed),)
        exact = outputs_of(double, tuple(each.double() for each in given))
        eager = outputs_of(module, given)
        found = oracle(graph, [each.numpy() for each in given])
        for one, two, three in zip(exact, eager, found, strict=True):
            assert three.shape == one.shape
            assert rms(three - one) <= network_bound(one, two)


@pytest.mark.parametrize("name", SMALL)
def test_small_network(name: str, tosa_oracle: Any) -> None:
    check(name, tosa_oracle, INPUTS)


@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_network(name: str, tosa_oracle: Any) -> None:
    check(name, tosa_oracle, INPUTS)


def test_batch_norms_are_part_of_convolutions() -> None:
    entry = NETWORKS["ds_cnn"]
    graph = read_tosa(
        to_tosa(export(entry.build(), Call(entry.example_inputs()), "n"), "n", "FP"), "n"
    )
    kinds = {operation.kind for operation in graph}
    assert kinds & {"CONV2D", "DEPTHWISE_CONV2D"}
    assert not kinds & {"MUL", "RSQRT"}


def test_channels_are_turned_once() -> None:
    entry = NETWORKS["mobilenet_v2"]
    graph = read_tosa(
        to_tosa(export(entry.build(), Call(entry.example_inputs()), "n"), "n", "FP"), "n"
    )
    kinds = [operation.kind for operation in graph]
    assert kinds.count("TRANSPOSE") == 1
    assert np.dtype(np.float32) == graph.inputs[0].dtype.numpy
