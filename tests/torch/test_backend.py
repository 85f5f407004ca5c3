"""`torch.compile(model, backend="mizzen")`: whatever graph PyTorch hands over, and whenever."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_map

from mizzen.diagnostics import MizzenError
from mizzen.torch.backend import mizzen as backend

OPTIONS: Any = {"accelerator": "ethos-u55-128", "calibration_calls": 2, "prove": "off"}


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """Let PyTorch capture anew."""
    torch.compiler.reset()
    torch.manual_seed(0)


class _Normed(nn.Module):
    """A convolution with a batch norm, whose statistics are buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.layer(x)))


class _Named(nn.Module):
    """Parameters under names of its own, and in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.my_matrix = nn.Parameter(torch.randn(4, 8))
        self.register_buffer("shift", torch.randn(4))
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(4))])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = nn.functional.linear(x.mean((1, 2)), self.my_matrix)
        return rows * self.scales[0] + self.shift


class _Numbers(nn.Module):
    """Results that are no tensors, and a number among the arguments."""

    def forward(self, x: torch.Tensor, factor: float = 2.0) -> Any:
        return torch.relu(x) * factor, None, x.shape[0], {"more": x + 1}


class _Writes(nn.Module):
    """Writes to its argument and to a buffer, which is a mean that goes on."""

    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        self.mean.mul_(0.5).add_(x.mean((0, 1, 2)), alpha=0.5)
        return torch.relu(x) + self.mean


def _images(batch: int = 1) -> list[torch.Tensor]:
    return [torch.randn(batch, 3, 8, 8) for _ in range(2)]


def _steps_off(model: Any, images: list[torch.Tensor], fast: Any, *more: Any) -> float:
    """Return the greatest error of four calls, in steps of the range of what PyTorch gives."""
    expected: Any = tree_map(_detached, [model(image.clone(), *more) for image in images * 2])
    found: Any = tree_map(_detached, [fast(image.clone(), *more) for image in images * 2])
    firsts = [row[0] if isinstance(row, tuple) else row for row in expected]
    span = max(float(row.max()) for row in firsts) - min(float(row.min()) for row in firsts)
    wrong = [
        float((ours[0] - theirs[0]).abs().max())
        if isinstance(ours, tuple)
        else float((ours - theirs).abs().max())
        for ours, theirs in zip(found, expected, strict=True)
    ]
    assert wrong[:2] == [0, 0]
    assert max(wrong[2:]) > 0
    return max(wrong) / span * 255


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


MODELS: dict[str, Callable[[], nn.Module]] = {
    "batch norm": _Normed,
    "sequential": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
    "own names": _Named,
    "numbers": _Numbers,
}

MODES = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "grad": torch.enable_grad,
}


@pytest.mark.parametrize("name", MODELS)
def test_graphs_of_all_kinds_are_compiled(name: str) -> None:
    """Two steps for each of three layers are what 8 bits may be off."""
    model = MODELS[name]().eval()
    fast = torch.compile(model, backend=backend, options=OPTIONS)
    with torch.no_grad():
        assert _steps_off(model, _images(), fast) <= 6


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_of_gradients_is_taken(mode: str) -> None:
    with MODES[mode]():
        images, model = _images(), _Normed().eval()
        fast = torch.compile(model, backend=backend, options=OPTIONS)
        assert _steps_off(model, images, fast) <= 6


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_each_size_of_a_batch_has_an_artifact(dynamic: bool | None) -> None:
    model = _Normed().eval()
    fast = torch.compile(model, backend=backend, options=OPTIONS, dynamic=dynamic)
    with torch.no_grad():
        for batch in (2, 3, 2):
            images = _images(batch)
            expected = [model(image) for image in images]
            found = [fast(images[index % 2]) for index in range(4)][2:]
            span = float(max(row.max() for row in expected))
            for ours, theirs in zip(found, expected, strict=True):
                assert ours.shape == theirs.shape
                assert float((ours - theirs).abs().max()) <= 0.1 * span


def test_results_that_are_no_tensors_are_given_too() -> None:
    model, images = _Numbers(), _images(2)
    fast = torch.compile(model, backend=backend, options=OPTIONS)
    found: Any = [fast(images[0], 3.0) for _ in range(3)][-1]
    assert found[1:3] == (None, 2)
    assert set(found[3]) == {"more"}


def test_what_a_model_writes_to_is_written() -> None:
    """The argument, and a buffer that goes on from call to call, where each may round a step."""
    model, reference = _Writes().eval(), _Writes().eval()
    fast = torch.compile(model, backend=backend, options={**OPTIONS, "calibration_calls": 4})
    row = torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8)
    with torch.no_grad():
        for _ in range(8):
            ours, theirs = row.clone(), row.clone()
            found, expected = fast(ours), reference(theirs)
            assert float((found - expected).abs().max()) <= 6 * 4 / 255
            assert float((ours - theirs).abs().max()) <= 6 * 2 / 255
    assert float((model.mean - reference.mean).abs().max()) <= 8 * 2 / 255


def test_new_parameters_are_compiled_anew() -> None:
    model, images = nn.Linear(8, 4).eval(), _images()
    fast = torch.compile(model, backend=backend, options=OPTIONS)
    with torch.no_grad():
        for _ in range(2):
            found = [fast(image) for image in images * 2]
            for ours, image in zip(found, images * 2, strict=True):
                assert float((ours - model(image)).abs().max()) <= 0.1
            model.weight.mul_(-1)


def test_two_threads_call_one_model() -> None:
    model, image = _Normed().eval(), _images()[0]
    fast = torch.compile(model, backend=backend, options=OPTIONS)

    def call(_: int) -> float:
        with torch.no_grad():
            return float((fast(image) - model(image)).abs().max())

    with ThreadPoolExecutor(2) as pool:
        assert max(pool.map(call, range(8))) <= 0.1


@pytest.mark.parametrize("kind", [_Normed, lambda: nn.Sequential(nn.Linear(8, 4), nn.Dropout())])
def test_a_model_in_training_is_refused_at_the_first_call(kind: Callable[[], nn.Module]) -> None:
    fast = torch.compile(kind().train(), backend=backend, options=OPTIONS)
    with pytest.raises(Exception, match="must be in inference mode") as caught:
        fast(_images()[0])
    inner = getattr(caught.value, "inner_exception", caught.value)
    assert isinstance(inner, MizzenError)
    assert inner.diagnostic.code == "E877"
