"""PyTorch programs on Ethos-N: what is on the NPU, what it computes, files, refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import nn
from torch.nn import functional

import mizzen
import mizzen.torch
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.host_steps import DequantizeStep, QuantizeStep, TorchStep
from mizzen.artifact.interface import Array
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError

ACCELERATOR = "ethos-n78-4tops-4ple"
KEEP = {"inline_non_compute_intensive_partitions": "false"}
IMAGE = (1, 3, 28, 28)
Convert = Callable[..., torch.export.ExportedProgram]


class Plain(nn.Module):
    """Convolution, ReLU, pool, linear."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.last = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(torch.relu(self.first(x)), 2)
        return self.last(torch.relu(self.second(x)).mean((2, 3)))


class Residual(nn.Module):
    """A sum of two branches, one of which has no layer; the pool makes a row of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.last = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(functional.relu6(self.first(x)), 2)
        x = torch.relu(x + self.second(x))
        return self.last(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Stem(nn.Module):
    """How ResNets begin, and a plane of 4x4 at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 7, stride=2, padding=3)
        self.second = nn.Conv2d(16, 24, 3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(torch.relu(self.first(x)), 3, 2, 1)
        return functional.adaptive_avg_pool2d(torch.relu(self.second(x)), 1)


class Depthwise(nn.Module):
    """Depthwise separable layers with normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.deep = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.point = nn.Conv2d(16, 24, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu6(self.norm(self.first(x)))
        return self.point(torch.relu(self.deep(x)))


class Branches(nn.Module):
    """Parts of channels, each through its own function, joined in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.last = nn.Conv2d(32, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = torch.chunk(self.first(x), 2, 1)
        left = torch.sigmoid(left)
        right = functional.leaky_relu(right, 0.1)
        return self.last(torch.cat([right, left], 1))


class Rows(nn.Module):
    """Layers on rows of a sequence, and an image that becomes one."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 2, stride=2)
        self.wide = nn.Linear(16, 32)
        self.narrow = nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        return x + self.narrow(torch.relu(self.wide(x)))


class Upsampling(nn.Module):
    """Down and up again, with a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(16, 16, 2, stride=2)
        self.side = nn.Conv2d(3, 16, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.up(torch.relu(self.down(x))), self.side(x)], 1)


class Interrupted(nn.Module):
    """An operator in the middle that only PyTorch has."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Conv2d(3, 8, 3, padding=1)
        self.behind = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.before(x))
        return y + self.behind(torch.cumprod(y, 3) * 0.1)


class Swishes(nn.Module):
    """A function between layers that the NPU does not have, in a residual network."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3 if not i else 8, 8, 3, padding=1) for i in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.hardswish(self.layers[0](x))
        x = x + self.layers[1](x)
        x = functional.hardswish(self.layers[2](x)) + x
        return self.layers[3](x)


WHOLE: dict[str, type[nn.Module]] = {
    "plain": Plain,
    "residual": Residual,
    "stem": Stem,
    "depthwise": Depthwise,
    "branches": Branches,
    "rows": Rows,
    "upsampling": Upsampling,
}
PARTLY: dict[str, type[nn.Module]] = {"interrupted": Interrupted, "swishes": Swishes}


def images(count: int = 4) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(IMAGE, generator=generator) for _ in range(count)]


@pytest.fixture(scope="module")
def programs() -> Callable[[str], torch.export.ExportedProgram]:
    """Quantise a network of the tables once."""
    from .conftest import convert

    made: dict[str, torch.export.ExportedProgram] = {}

    def program(name: str) -> torch.export.ExportedProgram:
        if name not in made:
            torch.manual_seed(0)
            calls = [(image,) for image in images()]
            made[name] = convert((WHOLE | PARTLY)[name](), calls, ACCELERATOR)
        return made[name]

    return program


def answer(artifact: Artifact, value: Array) -> Array:
    """Run an artifact that gives one tensor."""
    found = artifact.run(value)
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("name", WHOLE)
def test_a_network_is_on_the_npu_as_a_whole(
    name: str, programs: Callable[[str], torch.export.ExportedProgram]
) -> None:
    artifact = mizzen.torch.compile_converted(programs(name), ACCELERATOR, name=name, prove="off")
    assert artifact.report is not None
    assert [(row.kind, row.reasons) for row in artifact.report.on_cpu] == []
    kinds = [type(step) for step in artifact.steps if not step.on_npu]
    assert kinds == [QuantizeStep, DequantizeStep]
    assert sum(step.on_npu for step in artifact.steps) == 1
    assert artifact.name == f"{name}_ethosn.tflite"


@pytest.mark.parametrize("name", WHOLE | PARTLY)
def test_each_operator_is_at_most_one_step_off_pytorch(
    name: str, programs: Callable[[str], torch.export.ExportedProgram], off_pytorch: Any
) -> None:
    """PyTorch rounds real numbers; the NPU scales integers by 16 bits, and halves go up."""
    found = list(off_pytorch(programs(name), (images(5)[4],), ACCELERATOR, KEEP))
    assert len(found) >= 2
    assert [row for row in found if row.steps > 1] == []


@pytest.mark.parametrize("name", PARTLY)
def test_what_the_npu_does_not_have_runs_in_pytorch_in_between(
    name: str, programs: Callable[[str], torch.export.ExportedProgram]
) -> None:
    artifact = mizzen.torch.compile_converted(programs(name), ACCELERATOR, name=name, prove="off")
    assert artifact.report is not None
    on_cpu = {row.kind for row in artifact.report.on_cpu}
    assert on_cpu == {"interrupted": {"aten.cumprod"}, "swishes": {"aten.hardswish"}}[name]
    assert all(row.reasons for row in artifact.report.on_cpu)
    assert artifact.report.macs_on_npu == artifact.report.macs
    assert any(isinstance(step, TorchStep) for step in artifact.steps)
    assert artifact.name == f"{name}_ethosn.zip"
    found = answer(artifact, images(1)[0].numpy())
    wanted = programs(name).module()(images(1)[0]).detach().numpy()
    scale = next(step.scale for step in artifact.steps if isinstance(step, DequantizeStep))
    # A step of each operator, of which no path has more than eight, not all of them upwards.
    assert np.abs(found - wanted).max() <= 4 * scale


@pytest.mark.parametrize("name", ["plain", "rows", "interrupted"])
def test_a_saved_artifact_gives_the_same(
    name: str, programs: Callable[[str], torch.export.ExportedProgram], tmp_path: Path
) -> None:
    artifact = mizzen.torch.compile_converted(programs(name), ACCELERATOR, name=name, prove="off")
    path = tmp_path / artifact.name
    artifact.save(path)
    loaded = mizzen.load(path)
    image = images(1)[0]
    wanted = answer(artifact, image.numpy())
    if path.suffix == ".zip":
        np.testing.assert_array_equal(loaded.run(image.numpy()), wanted)
        return
    first = next(step for step in artifact.steps if isinstance(step, QuantizeStep))
    last = next(step for step in artifact.steps if isinstance(step, DequantizeStep))
    given = np.clip(np.rint(image.numpy() / first.scale) + first.zero_point, first.low, first.high)
    found = answer(loaded, given.astype(np.int8))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(
        (found.astype(float) - last.zero_point) * last.scale, wanted, rtol=1e-6
    )


def test_from_float_in_one_call() -> None:
    torch.manual_seed(0)
    calibration = images(6)
    model = Plain().eval()
    artifact = mizzen.torch.compile(
        model, (calibration[0],), ACCELERATOR, calibration=calibration, name="plain"
    )
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()
    assert artifact.report.configuration["accelerator"] == ACCELERATOR
    found = artifact.run(calibration[1].numpy())
    wanted = model(calibration[1]).detach().numpy()
    assert np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()


def test_a_batch_of_inferences() -> None:
    torch.manual_seed(0)
    calibration = images()
    artifact = mizzen.torch.compile(
        Plain().eval(), (calibration[0],), ACCELERATOR, calibration=calibration
    )
    single = [artifact.run(image.numpy()) for image in calibration]
    together = artifact.run(np.concatenate([image.numpy()[None] for image in calibration]))
    np.testing.assert_array_equal(together, np.stack(single))


def test_what_does_nothing_behind_what_the_npu_has_not(converted: Convert) -> None:
    """The value of both is one, and PyTorch must give it."""

    class Network(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.unsqueeze(3).expand(-1, -1, -1, -1, -1)

    calls = [(torch.randn(4, 1, 3, 5),)]
    exported = converted(Network(), calls, ACCELERATOR)
    artifact = mizzen.torch.compile_converted(exported, ACCELERATOR, prove="off")
    wanted = exported.module()(*calls[0]).numpy()
    np.testing.assert_array_equal(artifact.run(calls[0][0].numpy()), wanted)


def test_an_exported_file_through_the_command_line(
    programs: Callable[[str], torch.export.ExportedProgram],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    exported = programs("interrupted")
    torch.export.save(exported, "net.pt2")
    check = ("check", "net.pt2", "--accelerator-config", ACCELERATOR)
    assert main(check) == 1
    shown = capsys.readouterr().out
    assert "aten.cumprod" in shown
    assert "there is no TOSA form of aten.cumprod here" in shown
    assert main([*check, "--max-cpu-ops", "1"]) == 0
    capsys.readouterr()
    assert main(["compile", "net.pt2", "--accelerator-config", ACCELERATOR]) == 0
    artifact = Path("output/net_ethosn.zip")
    assert artifact.exists()
    image = images(1)[0].numpy()
    np.save("image.npy", image)
    assert main(["run", str(artifact), "--input", "image.npy"]) == 0
    assert main(["inspect", str(artifact)]) == 0
    wanted = answer(mizzen.torch.compile_converted(exported, ACCELERATOR, prove="off"), image)
    (result,) = Path("output").glob("*.npy")
    np.testing.assert_array_equal(np.load(result).reshape(wanted.shape), wanted)


def test_options_of_the_target(
    programs: Callable[[str], torch.export.ExportedProgram],
) -> None:
    exported = programs("plain")
    direct = mizzen.torch.compile_converted(
        exported,
        ACCELERATOR,
        target_options={"disable_winograd": "true"},
        arena_cache_size=524288,
        prove="off",
    )
    assert direct.report is not None
    assert direct.report.configuration == {
        "accelerator": ACCELERATOR,
        "sram_bytes": 524288,
        "options": {"disable_winograd": "true"},
    }
    default = mizzen.torch.compile_converted(exported, ACCELERATOR, prove="off")
    for image in images(2):
        np.testing.assert_array_equal(direct.run(image.numpy()), default.run(image.numpy()))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"accelerator": "ethos-n78-3tops"}, "E210"),
        ({"accelerator": ACCELERATOR, "memory_mode": "Shared_Sram"}, "E226"),
        ({"accelerator": ACCELERATOR, "target_options": {"strategy9": "true"}}, None),
        ({"accelerator": ACCELERATOR, "arena_cache_size": 1000}, "E911"),
        ({"accelerator": "ethos-u55-128", "target_options": KEEP}, "E225"),
    ],
)
def test_what_cannot_be_asked_for(
    arguments: dict[str, Any],
    code: str | None,
    programs: Callable[[str], torch.export.ExportedProgram],
) -> None:
    with pytest.raises(MizzenError) as caught:
        mizzen.torch.compile_converted(programs("plain"), **arguments)
    assert code is None or caught.value.diagnostic.code == code
