"""Programs, modules and tensors where something else belongs: an error says what takes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import mizzen
from mizzen.analysis.evaluation import evaluate
from mizzen.calibration import quantize_file
from mizzen.diagnostics import MizzenError
from mizzen.torch import compile, compile_converted

U55 = "ethos-u55-128"
IMAGE = torch.ones(1, 3, 8, 8)
Converted = Callable[..., torch.export.ExportedProgram]


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()


def refused(action: Callable[[], Any]) -> str:
    with pytest.raises(MizzenError) as caught:
        action()
    return str(caught.value)


@pytest.fixture
def program(converted: Converted) -> torch.export.ExportedProgram:
    return converted(net(), [(IMAGE,), (-IMAGE,)], U55)


def test_a_converted_program_is_not_quantised_again(program: Any) -> None:
    text = (
        "error[E230]: a model must be in floating point, and a program that convert_pt2e made "
        "came\n"
        "  help mizzen.torch.compile_converted(exported, accelerator) compiles it, exported "
        "again: torch.export.export(converted, example_inputs)"
    )
    for given in (program, program.module()):
        assert refused(lambda given=given: compile(given, (IMAGE,), U55)) == text


def test_a_converted_program_is_no_file(program: Any) -> None:
    assert refused(lambda: mizzen.compile(program, U55)) == (
        "error[E230]: a network must be a file's path or its bytes, and one of type "
        "ExportedProgram came\n"
        "  help converted programs are for mizzen.torch.compile_converted(exported, accelerator)"
    )


def test_a_module_is_no_converted_program(program: Any) -> None:
    wrong: Any = program.module()
    head = "error[E230]: a converted program must be what torch.export.export gives, and one of "
    assert refused(lambda: compile_converted(wrong, U55)) == (
        f"{head}type GraphModule came\n  help torch.export.export(converted, example_inputs)"
    )
    wrong = net()
    assert refused(lambda: compile_converted(wrong, U55)) == (
        f"{head}type Sequential came\n"
        "  help mizzen.torch.compile(model, example_inputs, accelerator) quantises a model"
    )


def test_a_module_is_no_reference(program: Any) -> None:
    artifact = compile_converted(program, U55, prove="off")
    wrong: Any = net()
    text = refused(lambda: evaluate(artifact, np.zeros((2, 3, 8, 8), np.float32), reference=wrong))
    assert text == (
        "error[E230]: the reference must be a file's path, and one of type Sequential came\n"
        "  help a PyTorch model is written with torch.export.save(torch.export.export(model, "
        "inputs), 'model.pt2')"
    )


def test_files_are_quantised_not_modules_and_tensors() -> None:
    wrong: Any = net()
    assert refused(lambda: quantize_file(wrong, "inputs.npy")) == (
        "error[E230]: a network must be a file's path, and one of type Sequential came\n"
        "  help PyTorch models are for mizzen.torch.compile(model, example_inputs, accelerator, "
        "calibration=inputs)"
    )
    wrong = [IMAGE]
    assert refused(lambda: quantize_file("cnn.onnx", wrong)) == (
        "error[E230]: data must be paths of files, and one of type Tensor came\n"
        "  help numpy.save('inputs.npy', inputs), an array [N, ...], and give its path"
    )


def test_a_list_of_tensors_with_gradients_is_an_input(program: Any) -> None:
    artifact = compile_converted(program, U55, prove="off")
    plain = artifact.run(IMAGE)
    (found,) = np.asarray(artifact.run([IMAGE.clone().requires_grad_()]))
    assert np.array_equal(found, plain)


def test_a_board_is_no_accelerator() -> None:
    assert refused(lambda: compile(net(), (IMAGE,), "alif_ensemble_e8")) == (
        "error[E210]: the accelerator must be an NPU's name, and 'alif_ensemble_e8' is a board's\n"
        "  help board='alif_ensemble_e8'"
    )


def test_a_board_sets_the_npu(program: Any) -> None:
    quantised = compile(net(), (IMAGE,), board="alif_ensemble_e8", prove="off")
    converted = compile_converted(program, board="alif_ensemble_e8", prove="off")
    assert quantised.accelerator == converted.accelerator == "ethos-u85-256"


def test_calibration_must_not_be_empty() -> None:
    assert refused(lambda: compile(net(), (IMAGE,), U55, calibration=[])) == (
        "error[E880]: calibration must have at least one call's arguments, and is empty\n"
        "  help give some dozens of real inputs; a generator that was read once is empty"
    )


def test_a_program_must_be_compiled_to_run(tmp_path: Path, program: Any) -> None:
    torch.export.save(program, tmp_path / "net.pt2")
    assert refused(lambda: mizzen.load(tmp_path / "net.pt2")) == (
        "error[E101]: net.pt2 must be compiled to be executed or looked into, and is a program of "
        "torch.export\n  help mizzen compile net.pt2"
    )


def test_a_checkpoint_is_not_quantised_either(tmp_path: Path) -> None:
    torch.save(net().state_dict(), tmp_path / "cnn.pth")
    compiled = refused(lambda: mizzen.compile(tmp_path / "cnn.pth", U55))
    assert compiled.startswith("error[E101]: cnn.pth must be ")
    assert refused(lambda: quantize_file(tmp_path / "cnn.pth", "inputs.npy")) == compiled
