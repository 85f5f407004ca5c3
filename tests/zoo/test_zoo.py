"""The zoo's networks are what they are called, alive, and the same in every process."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the zoo needs PyTorch")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# Published numbers of parameters where there are some; digits, unet, yolo and tcn are our own.
PARAMETERS = {
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3_small": 2_542_856,
    "resnet18": 11_689_512,
    "efficientnet_lite0": 4_652_008,
    "vit_tiny": 5_717_416,
}
SHAPES = {"unet": (1, 2, 96, 96), "yolo": (1, 1500, 25), "digits": (1, 10), "lstm": (1, 12)}
HASH = (
    "import sys, hashlib; sys.path.insert(0, sys.argv[1]); import zoo\n"
    "state = zoo.NETWORKS[sys.argv[2]].build().state_dict()\n"
    "print(hashlib.sha256(b''.join(t.numpy().tobytes() for t in state.values())).hexdigest())"
)


@pytest.fixture(scope="module")
def zoo() -> Any:
    sys.path.insert(0, str(EXAMPLES))
    try:
        import zoo
    finally:
        sys.path.remove(str(EXAMPLES))
    return zoo


@pytest.mark.parametrize(("name", "count"), PARAMETERS.items())
def test_sizes_are_the_published_ones(zoo: Any, name: str, count: int) -> None:
    module = zoo.NETWORKS[name].network()
    assert sum(parameter.numel() for parameter in module.parameters()) == count


@pytest.mark.parametrize(("name", "shape"), SHAPES.items())
def test_outputs_have_the_documented_shape(zoo: Any, name: str, shape: tuple[int, ...]) -> None:
    entry = zoo.NETWORKS[name]
    with torch.no_grad():
        assert entry.build()(*entry.example_inputs()).shape == shape


@pytest.mark.parametrize("name", ["ds_cnn", "unet", "yolo", "convnext", "encoder", "tcn"])
def test_outputs_depend_on_the_input_and_stay_small(zoo: Any, name: str) -> None:
    entry = zoo.NETWORKS[name]
    module = entry.build()
    with torch.no_grad():
        first, second = (module(*inputs) for inputs in entry.calibration()[:2])
    assert (first - second).abs().max() > 0.01  # a dead network gives its biases
    assert first.abs().max() < 1000


def test_digits_is_trained(zoo: Any) -> None:
    module = zoo.NETWORKS["digits"].build()
    # 1 of 360 images is 0.3 %; 350 right is what a logistic regression does not reach.
    assert zoo.digits.accuracy(module) >= 350 / 360


def test_weights_and_inputs_are_the_same_in_another_process(zoo: Any) -> None:
    entry = zoo.NETWORKS["ds_cnn"]
    torch.rand(3)  # the caller's random state must not matter
    state = entry.build().state_dict()
    here = hashlib.sha256(b"".join(t.numpy().tobytes() for t in state.values())).hexdigest()
    command = [sys.executable, "-c", HASH, str(EXAMPLES), "ds_cnn"]
    there = subprocess.run(command, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here
    (first,), (second,) = entry.example_inputs(), entry.example_inputs()
    assert torch.equal(first, second)
