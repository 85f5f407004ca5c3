"""PyTorch programs and TOSA networks beside their references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch programs need PyTorch")

from mizzen.analysis.comparison.exactness import (  # noqa: E402
    Inputs,
    compare,
    compare_program,
    run,
    sides,
)
from mizzen.artifact.steps import NpuStep  # noqa: E402
from mizzen.compiler.backend import resolve_target  # noqa: E402
from mizzen.compiler.options import CompileOptions  # noqa: E402
from mizzen.compiler.torch.exported import load_exported  # noqa: E402
from mizzen.diagnostics import MizzenError  # noqa: E402
from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config  # noqa: E402
from mizzen.report.comparison import Outcome  # noqa: E402
from mizzen.torch import to_tosa  # noqa: E402


class Net(torch.nn.Module):
    """Two convolutions, a pool and a product; on request PyTorch's sort between."""

    def __init__(self, sorts: bool = False) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 8, 3, stride=2)
        self.head = torch.nn.Linear(8, 4)
        self.sorts = sorts

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.second(torch.relu(self.first(x)))).mean((2, 3))
        return self.head(torch.sort(y, -1)[0] if self.sorts else y)


def quantised(folder: Path, sorts: bool = False) -> Path:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    torch.manual_seed(3)
    example = (torch.randn(1, 3, 9, 9),)
    quantizer = EthosUQuantizer("ethos-u55-128")
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(Net(sorts).eval(), example).module(), quantizer)
    for _ in range(8):
        prepared(torch.randn(1, 3, 9, 9))
    file = folder / "net.pt2"
    torch.export.save(torch.export.export(convert_pt2e(prepared), example), file)
    return file


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quantised(tmp_path_factory.mktemp("program"))


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_layers_are_those_of_the_program(program: Path, accelerator: str) -> None:
    found = compare(program, accelerator, inputs=Inputs(count=3))
    assert found.holds
    assert found.reference == "the converted PyTorch program"
    assert [row.kind for row in found.layers][:2] == ["aten.conv2d", "aten.conv2d"]
    assert "first (Conv2d)" in found.layers[0].name
    assert found.layers[0].elements == 3 * 8 * 9 * 9
    assert found.layers[1].elements == 3 * 8 * 4 * 4
    assert found.elements == 3 * 4
    assert found.count(Outcome.UNSEEN) == 0


def test_pytorch_s_own_layers_are_compared(tmp_path: Path) -> None:
    found = compare(quantised(tmp_path, sorts=True), "ethos-u55-128", inputs=Inputs(count=2))
    assert found.holds
    (sort,) = (row for row in found.layers if row.kind == "aten.sort")
    assert sort.device.value == "CPU"
    assert {row.outcome for row in found.layers} <= {Outcome.EQUAL, Outcome.BOUNDED, Outcome.FUSED}


def test_a_damaged_layer_of_a_program_is_named(program: Path) -> None:
    target = resolve_target(CompileOptions("ethos-u55-128", prove="off"))
    (compared,) = sides(program, target)
    (step,) = (row for row in compared.artifact.steps if isinstance(row, NpuStep))
    scales: list[int] = [
        row.values["address"]
        for row in step.program.instructions
        if row.command.name == "SET_SCALE_BASE"
    ]
    region, constants = next(iter(step.program.constants.items()))
    changed = np.array(constants)
    changed[scales[1] + 8] ^= 0x70  # the scale of the second operation's first channel
    step.program.constants[region] = changed
    found = run(compared, target, Inputs(count=2))
    assert not found.holds
    assert [row.index for row in found.wrong] == [1]


def test_tosa_is_held_against_its_meaning(program: Path, tmp_path: Path) -> None:
    exported = load_exported(program.read_bytes(), "net.pt2")
    file = tmp_path / "net.tosa"
    file.write_bytes(to_tosa(exported))
    found = compare(file, "ethos-u55-128", inputs=Inputs(count=2))
    assert found.holds
    assert found.reference == "TOSA's meaning"
    assert found.elements == 2 * 4
    scaled = [row for row in found.layers if row.kind == "RESCALE" and row.elements]
    assert [row.elements for row in scaled][:2] == [2 * 8 * 9 * 9, 2 * 8 * 4 * 4]
    fused = [row for row in found.layers if row.kind == "CONV2D"]
    assert all(row.outcome is Outcome.FUSED and row.into is not None for row in fused)


def test_a_program_in_memory_is_compared_like_its_file(program: Path) -> None:
    exported = load_exported(program.read_bytes(), "net.pt2")
    found = compare_program(exported, "ethos-u55-128", inputs=Inputs(count=3), name="net.pt2")
    assert found == compare(program, "ethos-u55-128", inputs=Inputs(count=3))


def test_an_artifact_beside_a_program_is_refused(program: Path, tmp_path: Path) -> None:
    import mizzen

    artifact = mizzen.compile(program, "ethos-u55-128", prove="off")
    with pytest.raises(MizzenError, match=r"E489.*must be compiled now"):
        compare(program, artifact=artifact)
