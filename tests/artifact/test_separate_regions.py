"""Networks that Vela compiles with ``--separate-io-regions``, beside their plain form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.checking.artifacts import check_artifact
from mizzen.artifact.steps import NpuStep
from mizzen.boards import find_board
from mizzen.conformance.cases import selected
from mizzen.diagnostics import MizzenError
from mizzen.export.project import Request
from mizzen.export.tflm.project import tflm_project
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.relocation import in_scratch

ACCELERATORS = ("ethos-u55-64", "ethos-u65-256", "ethos-u85-256")
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.tflite"
APART = ("--cop-format", "COP2", "--separate-io-regions")
NOTE = (
    "warning[W694]: inputs and outputs have regions of their own, 3 and 4, and a runtime must give "
    "each a buffer: in an arena planned by OfflineMemoryAllocation, TensorFlow Lite Micro's, they "
    "share bytes with others\n"
    '  at   net_vela.tflite, operator 0 ethos-u -> "sum"\n'
    "  help for TensorFlow Lite Micro compile it without --separate-io-regions"
)


def two_and_two() -> bytes:
    """A network of two inputs, and two outputs of which one is read again."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, 8, 8, 16), "int8", 0.05)
    y = net.tensor("y", (1, 8, 8, 16), "int8", 0.04, 1)
    total = net.tensor("sum", (1, 8, 8, 16), "int8", 0.06)
    product = net.tensor("product", (1, 8, 8, 16), "int8", 0.05)
    net.operator("ADD", [x, y], [total], ("AddOptions", {}))
    net.operator("MUL", [total, y], [product], ("MulOptions", {}))
    return net.finish([x, y], [total, product])


def compiled(network: bytes, folder: Path, accelerator: str, *options: str) -> mizzen.Artifact:
    folder.mkdir()
    (folder / "net.tflite").write_bytes(network)
    vela = [sys.executable, "-m", "ethosu.vela", "net.tflite", "--output-dir", ".", *options]
    subprocess.run(
        [*vela, "--accelerator-config", accelerator], cwd=folder, check=True, capture_output=True
    )
    return mizzen.load(folder / "net_vela.tflite")


def program_of(artifact: mizzen.Artifact) -> Program:
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    return step.program


def outputs(artifact: mizzen.Artifact) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    given = [
        rng.integers(-128, 128, (6, *info.shape[1:])).astype(info.dtype) for info in artifact.inputs
    ]
    results = artifact.run(*given)
    return list(results) if isinstance(results, tuple) else [results]


def require_equal(one: mizzen.Artifact, other: mizzen.Artifact) -> None:
    for wanted, came in zip(outputs(one), outputs(other), strict=True):
        np.testing.assert_array_equal(came, wanted)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_it_computes_what_the_plain_form_does(accelerator: str, tmp_path: Path) -> None:
    for name, network in (("digits", DIGITS.read_bytes()), ("two", two_and_two())):
        plain = compiled(network, tmp_path / f"{name}-plain", accelerator)
        apart = compiled(network, tmp_path / f"{name}-apart", accelerator, *APART)
        require_equal(plain, apart)
        checked = check_artifact(apart)
        assert not checked.findings
        assert [doubt.code for doubt in checked.doubts] == ["W694"]


def test_the_regions_hold_all_inputs_and_all_outputs(tmp_path: Path) -> None:
    apart = compiled(two_and_two(), tmp_path / "apart", "ethos-u55-64", *APART)
    program = program_of(apart)
    assert [(each.name, each.region, each.offset) for each in program.inputs] == [
        ("x", 3, 0), ("y", 3, 1024),
    ]  # fmt: skip
    assert [(each.name, each.region, each.offset) for each in program.outputs] == [
        ("sum", 4, 0), ("product", 4, 1024),
    ]  # fmt: skip
    assert [note.render() for note in apart.notes] == [NOTE]


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_it_can_be_moved_into_the_scratch(accelerator: str, tmp_path: Path) -> None:
    for name, network in (("digits", DIGITS.read_bytes()), ("two", two_and_two())):
        apart = compiled(network, tmp_path / name, accelerator, *APART)
        program = in_scratch(program_of(apart))
        assert {each.region for each in (*program.inputs, *program.outputs)} == {1}
        apart.save(tmp_path / f"{name}.pte")
        require_equal(apart, mizzen.load(tmp_path / f"{name}.pte"))


def test_a_program_without_such_regions_is_as_it_was(tmp_path: Path) -> None:
    program = program_of(compiled(two_and_two(), tmp_path / "plain", "ethos-u55-64"))
    assert in_scratch(program) is program


def test_tensorflow_lite_micro_is_not_given_one(tmp_path: Path) -> None:
    apart = compiled(two_and_two(), tmp_path / "apart", "ethos-u55-64", *APART)
    with pytest.raises(MizzenError) as caught:
        tflm_project(apart, Request(find_board("corstone300")))
    assert str(caught.value) == (
        "error[E472]: TensorFlow Lite Micro executes TFLite networks, and net_vela.tflite has "
        "regions of their own for inputs and outputs, which the arena does not hold\n"
        "  help choose --to c or --to executorch; what was compiled of a .tflite goes as it is"
    )


def test_state_that_nothing_carries_over_is_refused(tmp_path: Path) -> None:
    (network,) = [case.build() for case in selected(["UNIDIRECTIONAL_SEQUENCE_LSTM"], [])
                  if case.name == "lstm_int8"]  # fmt: skip
    with pytest.raises(MizzenError) as caught:
        compiled(network, tmp_path / "apart", "ethos-u55-64", *APART)
    assert str(caught.value) == (
        "error[E125]: state must lie in one place, and this stream reads it from region 3, with "
        "the inputs, and writes it to region 1: nothing carries it over\n"
        '  at   net_vela.tflite, operator 0 ethos-u -> "hidden"\n'
        "  rule Vela 5.2, --separate-io-regions\n"
        "  help compile a network with variables without --separate-io-regions"
    )
