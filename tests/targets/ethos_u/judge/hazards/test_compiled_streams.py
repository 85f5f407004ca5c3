"""Streams of the compiler have no hazards: real networks, and networks of one operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.loading import artifact_of
from mizzen.conformance.cases import cases
from mizzen.conformance.compilers import Built, Compiler, build
from mizzen.conformance.networks import Case
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.system_config import resolve

CASES = cases()

QUICK = ("ethos-u55-32", "ethos-u65-512", "ethos-u85-256")


def check(path: Path, accelerator: str, optimise: str, generator: str = "best") -> None:
    options = {"generator": generator}
    artifact = mizzen.compile(
        path, accelerator, optimise=optimise, prove="off", target_options=options
    )
    assert any(step.on_npu for step in artifact.steps)
    assert [found.render() for found in artifact.hazards] == []


@pytest.mark.parametrize("optimise", ["Performance", "Size"])
@pytest.mark.parametrize("accelerator", QUICK)
@pytest.mark.parametrize(
    ("name", "generator"), [("kws_ref_model", "best"), ("person_detect", "vela")]
)
def test_network(
    model_file: Callable[[str], Path], name: str, generator: str, accelerator: str, optimise: str
) -> None:
    check(model_file(f"{name}.tflite"), accelerator, optimise, generator)


@pytest.mark.sweep
@pytest.mark.parametrize("optimise", ["Performance", "Size"])
@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_network_everywhere(network_file: Path, accelerator: str, optimise: str) -> None:
    check(network_file, accelerator, optimise)


def findings(network: bytes) -> list[str]:
    return [found.render() for found in artifact_of(network, "network.tflite").hazards]


def built(case: Case, compiler: Compiler, accelerator: str, optimise: str) -> bytes | None:
    """Compile a case; None if the compiler refuses it."""
    configuration = resolve(accelerator, optimise=optimise)
    outcome = build(case.build(), f"{case.name}.tflite", compiler, configuration)
    return outcome.network if isinstance(outcome, Built) else None


@pytest.mark.parametrize("accelerator", QUICK)
@pytest.mark.parametrize("case", CASES[::60], ids=lambda case: case.name)
def test_operator(case: Case, accelerator: str) -> None:
    network = built(case, Compiler.REGOR, accelerator, "Performance")
    assert network is None or findings(network) == []


# The core loses their variables on U85: nothing gives what its NPU operator takes.
DAMAGED = ("read_variable", "assign_variable")


@pytest.mark.sweep
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in DAMAGED], ids=lambda case: case.name
)
def test_operator_everywhere(case: Case) -> None:
    for accelerator in ACCELERATORS:
        for optimise in ("Performance", "Size"):
            network = built(case, Compiler.REGOR, accelerator, optimise)
            assert network is None or findings(network) == [], (accelerator, optimise)


# The first has strides whose upper bits are no stride's, the second is in docs/explanation/hazards.
NOT_OF_THE_DEPRECATED_CORE = ("mirror_pad", "resize_bilinear")


@pytest.mark.sweep
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not case.name.startswith(NOT_OF_THE_DEPRECATED_CORE)],
    ids=lambda case: case.name,
)
def test_operator_of_the_deprecated_core(case: Case) -> None:
    for accelerator in ("ethos-u55-64", "ethos-u55-128", "ethos-u65-512"):
        network = built(case, Compiler.LEGACY, accelerator, "Performance")
        assert network is None or findings(network) == [], accelerator


@pytest.mark.sweep
@pytest.mark.parametrize("optimise", ["Performance", "Size"])
@pytest.mark.parametrize("accelerator", ["ethos-u55-64", "ethos-u55-128", "ethos-u65-512"])
def test_network_of_the_deprecated_core(
    network_file: Path, accelerator: str, optimise: str
) -> None:
    configuration = resolve(accelerator, optimise=optimise)
    outcome = build(network_file.read_bytes(), network_file.stem, Compiler.LEGACY, configuration)
    assert isinstance(outcome, Built)
    assert findings(outcome.network) == []


@pytest.mark.parametrize("accelerator", ["ethos-u55-64", "ethos-u65-512"])
def test_a_race_of_the_deprecated_core(accelerator: str) -> None:
    (case,) = (case for case in CASES if case.name == "resize_bilinear_2_half")
    network = built(case, Compiler.LEGACY, accelerator, "Performance")
    assert network is not None
    (found,) = findings(network)
    assert found.startswith("error[E671]: OP_DEPTHWISE: IFM must read 28 of bytes 64..310 of ")
    assert "\n  help set BLOCKDEP to 0 for the command at word " in found


def scores(classes: int) -> bytes:
    """A linear layer and a softmax, which takes the maximum with a kernel of so many elements."""
    net = NetworkBuilder()
    rng = np.random.default_rng(0)
    x = net.tensor("x", (1, 16), np.int8, 0.05)
    weights = net.constant("w", rng.integers(-127, 128, (classes, 16)).astype(np.int8), 0.01)
    bias = net.constant("b", np.zeros(classes, np.int32), 0.0005)
    middle, result = (
        net.tensor(name, (1, classes), np.int8, scale, zero)
        for name, scale, zero in (("y", 0.1, 0), ("z", 1 / 256, -128))
    )
    net.operator("FULLY_CONNECTED", [x, weights, bias], [middle], ("FullyConnectedOptions", {}))
    net.operator("SOFTMAX", [middle], [result], ("SoftmaxOptions", {"beta": 1.0}))
    return net.finish([x], [result])


def test_a_race_of_the_deprecated_core_after_a_wide_kernel() -> None:
    configuration = resolve("ethos-u55-128")
    told: dict[Compiler, list[str]] = {}
    for compiler in (Compiler.LEGACY, Compiler.REGOR):
        outcome = build(scores(600), "scores.tflite", compiler, configuration)
        assert isinstance(outcome, Built)
        told[compiler] = findings(outcome.network)
    (found,) = told[Compiler.LEGACY]
    assert found.startswith("error[E671]: OP_POOL: IFM must read bytes ")
    assert "\n  help set BLOCKDEP to 0 for the command at word " in found
    assert told[Compiler.REGOR] == []
