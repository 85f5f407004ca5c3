"""Instrumented artifacts: bit-equal, with parts that say what they measure, or a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.instrumenting import cut, holds_compiled, instrument
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import load
from mizzen.artifact.steps import NpuStep
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.cutting import Part, parts_of
from mizzen.targets.ethos_u.machine.commands import Arch, encode
from mizzen.targets.ethos_u.machine.program import Program

NPUS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")


@pytest.fixture(scope="module", params=NPUS)
def artifact(request: pytest.FixtureRequest, repository: Path) -> Artifact:
    network = repository / "examples" / "digits" / "digits.tflite"
    return mizzen.compile(network, request.param, prove="off")


def test_parts_compute_the_same_and_have_no_hazards(artifact: Artifact) -> None:
    made = instrument(artifact)
    images = np.random.default_rng(2).integers(-128, 128, (8, 8, 8, 1), np.int8)
    np.testing.assert_array_equal(made.artifact.run(images), artifact.run(images))
    assert made.artifact.hazards == ()
    assert [step.on_npu for step in made.artifact.steps] == [True] * 7
    assert made.artifact.name == "digits_vela_parts.tflite"


def test_parts_say_what_cutting_adds(artifact: Artifact) -> None:
    made = instrument(artifact)
    assert artifact.report is not None
    assert made.artifact.report is not None
    assert artifact.report.time is not None
    assert made.artifact.report.time is not None
    rounding = len(made.parts)
    assert abs(made.whole_cycles - artifact.report.time.npu_cycles) <= rounding
    assert abs(made.cycles - made.artifact.report.time.npu_cycles) <= rounding
    assert made.parts[0].added_cycles == 0
    assert sum(part.added_cycles for part in made.parts) == made.cycles - made.whole_cycles
    assert all(part.start_cycles > 0 for part in made.parts)


def test_placements_keep_their_names_and_cycles(artifact: Artifact) -> None:
    made = instrument(artifact).artifact
    assert made.report is not None
    assert artifact.report is not None
    named = [(each.name, each.device) for each in made.report.placements]
    assert named == [(each.name, each.device) for each in artifact.report.placements]
    assert made.report.flash_bytes - artifact.report.flash_bytes == len(made.data) - len(
        artifact.data
    )


def test_the_command_line_cuts_networks_and_artifacts(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = str(repository / "examples" / "digits" / "digits.tflite")
    folder = ("--output-dir", str(tmp_path), "--quiet")
    npu = ("--accelerator-config", "ethos-u55-128", "--prove", "off")
    assert main(["compile", network, "--instrument", *npu, *folder]) == 0
    assert "7 parts: 16,779 cycles; whole: 14,456" in capsys.readouterr().out
    layers = json.loads((tmp_path / "digits_vela_parts_layers.json").read_text())
    assert [part["layers"][0]["name"] for part in layers["parts"]][:2] == ["conv0", "conv1"]

    whole = tmp_path / "digits_vela.tflite"
    assert holds_compiled(whole.read_bytes())
    again = ("--output-dir", str(tmp_path / "again"), "--quiet", "--json")
    assert main(["compile", str(whole), "--instrument", *again]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["instrumented"]["parts"] == layers["parts"]
    parts = (tmp_path / "again" / "digits_vela_parts.tflite").read_bytes()
    assert parts == (tmp_path / "digits_vela_parts.tflite").read_bytes()


def test_an_artifact_without_a_report_has_commands_for_layers(
    artifact: Artifact, tmp_path: Path
) -> None:
    path = tmp_path / "other.tflite"
    path.write_bytes(artifact.data)
    made = instrument(load(path))
    assert [said.code for said in made.diagnostics] == ["W357"]
    assert made.parts[0].layers[0].kind == "OP_CONV"
    assert len(made.parts) > 20


def refusal(artifact: Artifact) -> str:
    with pytest.raises(MizzenError) as raised:
        instrument(artifact)
    return str(raised.value)


def digits(repository: Path, npu: str) -> Artifact:
    return mizzen.compile(repository / "examples" / "digits" / "digits.tflite", npu, prove="off")


def test_what_has_no_counters_is_refused(repository: Path) -> None:
    assert refusal(digits(repository, "ethos-n78-4tops-4ple")) == (
        "error[E311]: digits_ethosn.tflite must have an operator on an Ethos-U, whose counters are "
        "read, and is for ethos-n78-4tops-4ple\n"
        "  help compile the network with --accelerator-config; `mizzen check` says why operators "
        "are on the CPU"
    )


def test_other_files_are_refused(repository: Path, tmp_path: Path) -> None:
    digits(repository, "ethos-u55-128").save(tmp_path / "digits.pte")
    assert refusal(load(tmp_path / "digits.pte")) == (
        "error[E310]: what is cut into parts must be a compiled .tflite, and digits.pte is a .pte "
        "file\n"
        "  help a PyTorch or ONNX network is one where no operator is left to its framework: "
        "artifact.save('network.tflite')"
    )


def test_regions_of_their_own_are_refused(repository: Path) -> None:
    artifact = digits(repository, "ethos-u55-128")
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    step.part = replace(step.part, shared={})
    assert refusal(artifact) == (
        "error[E312]: digits_vela.tflite must have its inputs and outputs in the arena, where they "
        "stay from one part to the next, and has regions of their own for them\n"
        "  help compile it without --separate-io-regions"
    )


def test_parts_that_are_not_the_same_are_an_error(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = digits(repository, "ethos-u65-256")
    monkeypatch.setattr(cut, "parts_of", unfinished)
    assert refusal(artifact) == (
        "error[E313]: the parts of digits_vela.tflite must give what it gives, and give other "
        "outputs\n"
        "  help this is a bug of Mizzen: please report it with the artifact"
    )
    monkeypatch.setattr(cut, "parts_of", impatient)
    assert refusal(artifact).startswith(
        "error[E314]: the parts of digits_vela.tflite must have no hazards, as it has none: "
    )


def unfinished(program: Program) -> tuple[Part, ...]:
    """Leave out the last part."""
    return parts_of(program)[:-1]


def impatient(program: Program) -> tuple[Part, ...]:
    """Wait for no transfer."""
    made: list[Part] = []
    for part in parts_of(program):
        kept = [each for each in part.program.instructions if each.name != "OP_DMA_WAIT"]
        words = encode(kept, Arch.U65)
        made.append(replace(part, program=replace(part.program, words=words, origins={})))
    return tuple(made)
