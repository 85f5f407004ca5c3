"""The zoo through the whole PyTorch path: compiled, executed, compared with others' arithmetic."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")
pytest.importorskip("sklearn", reason="scikit-learn, whose digits are trained on, is not installed")

import torch
from torch.utils._pytree import tree_map

import mizzen.torch
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.host_steps import DequantizeStep
from mizzen.artifact.interface import Array
from mizzen.compiler.codegen import step_of
from mizzen.compiler.ethos_u.makers import region_compiler
from mizzen.compiler.ethos_u.regions import WINDOW_LIMITS
from mizzen.compiler.proof.options import OFF
from mizzen.compiler.torch.call import Call
from mizzen.compiler.torch.exported import export
from mizzen.compiler.torch.placement import place
from mizzen.frontends.torch.int_lowering.int_lower import Lowered, lower
from mizzen.frontends.torch.narrowing import read
from mizzen.graph import Graph
from mizzen.partition import Device, extract
from mizzen.targets.ethos_u.machine.system_config import resolve

ZOO = Path(__file__).resolve().parents[2] / "examples"
if str(ZOO) not in sys.path:
    sys.path.insert(0, str(ZOO))

ZOO_PACKAGE: Any = import_module("zoo")
NETWORKS: dict[str, Any] = ZOO_PACKAGE.NETWORKS

Oracle = Callable[[Graph, Sequence[Array]], list[Array]]

U55, U85 = "ethos-u55-128", "ethos-u85-256"
QUICK = ("digits", "ds_cnn", "lstm", "encoder")
STATEFUL = ("decoder",)
"""Networks whose next output depends on the calls before, the calibration's among them."""
CHAOTIC = ("mobilenet_v3_small", "unet", "vit_tiny")
"""Networks whose outputs have more quantisation noise than half a step: PyTorch in float32 differs
there by more than a step from PyTorch in float64."""

SHARE_OVER_ONE_STEP = 0.001
INPUTS = 20


def networks(*quick: str) -> list[Any]:
    """Return all networks as parameters; those that are not quick are for the sweep."""
    return [
        pytest.param(name, marks=() if name in quick else (pytest.mark.sweep,)) for name in NETWORKS
    ]


@cache
def built(name: str) -> Any:
    return NETWORKS[name].build()


@cache
def converted(name: str) -> torch.export.ExportedProgram:
    """Quantise a network as a user would, and export it."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

    entry = NETWORKS[name]
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_quantization_config())
    exported = export(built(name), Call(entry.example_inputs()), name)
    prepared: Any = prepare_pt2e(exported.module(), quantizer)
    for inputs in entry.calibration():
        prepared(*inputs)
    return torch.export.export(convert_pt2e(prepared), entry.example_inputs())


@dataclass(frozen=True, eq=False)
class Regions:
    """A placed program: what is on the NPU, as it was lowered and as it was compiled."""

    lowered: Lowered
    placed: Any


@cache
def regions(name: str, accelerator: str) -> Regions:
    lowered = lower(read(converted(name), name), WINDOW_LIMITS)
    return Regions(lowered, place(lowered, region_compiler(resolve(accelerator)), (), OFF, None))


@pytest.mark.parametrize("name", networks(*QUICK))
@pytest.mark.parametrize("accelerator", [U55, U85])
def test_the_stream_is_the_lowered_network_bit_for_bit(
    name: str, accelerator: str, tosa_oracle: Oracle, request: pytest.FixtureRequest
) -> None:
    found = regions(name, accelerator)
    generator = np.random.default_rng(0)
    count = INPUTS if "sweep" not in (request.config.option.markexpr or "") else 3
    for groups, code in found.placed.code.items():
        whole = extract(found.lowered.graph, groups)
        tensors: dict[object, int] = {}
        for value in (*whole.inputs, *whole.outputs):
            tensors.setdefault(value, len(tensors))
        step = step_of(code, tensors)
        for _ in range(count):
            inputs = [
                generator.integers(-128, 128, value.shape).astype(value.dtype.numpy)
                for value in whole.inputs
            ]
            values = {
                tensors[value]: array[None]
                for value, array in zip(whole.inputs, inputs, strict=True)
            }
            step.run(values, 1)
            for value, wanted in zip(whole.outputs, tosa_oracle(whole.graph, inputs), strict=True):
                np.testing.assert_array_equal(values[tensors[value]][0], wanted)


@pytest.mark.parametrize("name", networks(*QUICK))
@pytest.mark.parametrize("accelerator", [U55, U85])
def test_everything_is_in_one_region_of_the_npu(name: str, accelerator: str) -> None:
    placed = regions(name, accelerator).placed
    on_npu = [region for region in placed.partition.regions if region.device is Device.NPU]
    assert len(on_npu) == 1
    rows = placed.partition.groups.values()
    assert sum(row.macs for row in rows if row.device is Device.CPU) == 0


@pytest.mark.parametrize(
    "name", [each for each in networks(*QUICK) if each.values[0] not in STATEFUL]
)
def test_outputs_are_near_what_pytorch_computes(name: str) -> None:
    exported, calls = converted(name), NETWORKS[name].calibration()
    artifact = mizzen.torch.compile_converted(exported, U55, name=name, prove="off")
    off = differences(artifact, exported, calls)
    share = float(np.mean(off > 1))
    if name not in CHAOTIC:
        assert share <= SHARE_OVER_ONE_STEP
        return
    # The NPU's integers may be no further from PyTorch than float32 is from float64. Both shares
    # are of one population, so they differ by chance: half as much again is over six standard
    # deviations of the smallest, 73 of 2,000.
    assert share <= 1.5 * float(np.mean(float32_noise(exported, calls) > 1))


def differences(
    artifact: Artifact, exported: torch.export.ExportedProgram, calls: Sequence[Any]
) -> Array:
    """Return how many steps each output is off what PyTorch computes."""
    module: Any = exported.module(check_guards=False)
    scales = [step.scale for step in artifact.steps if isinstance(step, DequantizeStep)]
    found: list[Array] = []
    for inputs in calls:
        wanted = tupled(module(*inputs))
        given = tupled(artifact.run(*(value.numpy() for value in inputs)))
        for left, right, scale in zip(wanted, given, scales, strict=True):
            found.append(np.abs(np.rint((left.detach().numpy() - right) / scale)).reshape(-1))
    return np.concatenate(found)


class InFloat64(torch.fx.Interpreter):
    """Computes each of PyTorch's operators in double precision, and rounds its results once."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if not str(target).startswith("aten."):
            return super().call_function(target, args, kwargs)
        wide = tree_map(partial(cast, torch.float32, torch.float64), (args, kwargs))
        result = super().call_function(target, *wide)
        return tree_map(partial(cast, torch.float64, torch.float32), result)


def cast(taken: torch.dtype, given: torch.dtype, value: Any) -> Any:
    """Return tensors of one type as another, and all else as it is."""
    is_taken = isinstance(value, torch.Tensor) and value.dtype == taken
    return value.to(given) if is_taken else value


def float32_noise(exported: torch.export.ExportedProgram, calls: Sequence[Any]) -> Array:
    """Return how many steps PyTorch in float32 is off PyTorch in float64, for each output."""
    module: Any = exported.module(check_guards=False)
    outputs: Any = list(exported.graph.nodes)[-1].args[0]
    off: list[Array] = []
    for inputs in calls:
        both = tupled(module(*inputs)), tupled(InFloat64(module).run(*inputs))
        for left, right, node in zip(*both, outputs, strict=True):
            steps = ((left - right) / node.args[1]).detach().abs().round()
            off.append(steps.numpy().reshape(-1))
    return np.concatenate(off)


def tupled(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def test_digits_lose_less_than_a_point_of_accuracy() -> None:
    digits: Any = import_module("zoo.digits")
    images, labels = (part[-digits.TEST_IMAGES :] for part in digits.data())
    module = built("digits")
    with torch.no_grad():
        float_right = float((module(images).argmax(1) == labels).float().mean())
    artifact = mizzen.torch.compile_converted(converted("digits"), U55, name="digits", prove="off")
    scores = tupled(artifact.run(images.numpy()))[0]
    npu_right = float(np.mean(scores.argmax(1) == labels.numpy()))
    assert float_right > 0.98
    assert npu_right >= float_right - 0.01


class LongLstm(torch.nn.Module):
    """A second of audio: 100 steps of 40 features."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(40, 64, batch_first=True)
        self.classifier = torch.nn.Linear(64, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.lstm(x)[0][:, -1])


def test_a_long_lstm_is_quick_and_small(slowness: float) -> None:
    torch.manual_seed(0)
    model = LongLstm().eval()
    inputs = [torch.randn(1, 100, 40) for _ in range(4)]
    start = time.process_time()
    artifact = mizzen.torch.compile(model, (inputs[0],), U55, calibration=inputs)
    assert time.process_time() - start < 30 * slowness  # ExecuTorch's Arm backend takes 319 s
    assert len(artifact.data) < 777_296 / 2  # half of its artifact
    off = artifact.run(inputs[0].numpy()) - model(inputs[0]).detach().numpy()
    assert np.abs(off).max() < 0.05
