"""Vela as a judge of TFLite networks: its code is taken as it is, and proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.cost import cost_report
from mizzen.artifact.execution import Contents
from mizzen.artifact.reading import contents_of
from mizzen.artifact.sealing import unsealed
from mizzen.artifact.steps import CpuStep, NpuStep, read_network
from mizzen.compiler.ethos_u.bounds import bounds_of
from mizzen.compiler.ethos_u.file_run import Mistake
from mizzen.compiler.ethos_u.vela import tflite
from mizzen.compiler.ethos_u.vela.tflite import VelaRun, tensors_of
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.tflite_truth import NetworkTruth
from mizzen.cpu.tflm import CpuKernels
from mizzen.flatbuffer import read, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite.lower import lower
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Cause, Compiled, Stopped, generate

from ..networks import Net, error, regions, report_of  # noqa: TID252 tests are no package with a name
from ..test_variables import delayed  # noqa: TID252

DIGITS = Path(__file__).parents[4] / "examples" / "digits" / "digits.tflite"
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
VELA = {"generator": "vela"}
HELP = "  help leave out `--generator`: Mizzen's own code needs no Vela"
PLANTED = 40


class Proved:
    """The digits' network, compiled by Vela, and what the reference says of it."""

    def __init__(self, accelerator: str) -> None:
        data = DIGITS.read_bytes()
        self.model = read_network(data, DIGITS.name)
        compiled = generate(data, resolve(accelerator))
        assert isinstance(compiled, Compiled)
        self.network = read_network(compiled.network, DIGITS.name)
        self.contents = contents_of(self.network)
        (step,) = self.contents.steps
        assert isinstance(step, NpuStep)
        self.step = step
        options = ProofOptions()
        self.truth = NetworkTruth(self.model, lower(self.model), options, bounds_of(self.model))
        rng = np.random.default_rng(5)
        (taken,) = step.program.inputs
        self.inputs = rng.integers(-128, 128, (64, *taken.shape), np.int8)
        self.right = self.outputs(step)

    def outputs(self, step: NpuStep) -> np.ndarray:
        (found,) = step.simulator.run([self.inputs], len(self.inputs)).outputs
        return found

    def run(self, contents: Contents | None = None) -> VelaRun:
        tensors = tensors_of(self.model, self.network)
        return VelaRun(self.truth, self.network, contents or self.contents, tensors)

    def is_missed(self, program: Program) -> bool:
        """Whether nothing is said of a program that gives something else."""
        step = NpuStep(self.step.family, replace(self.step.part, program=program))
        try:
            mistake = self.run(replace(self.contents, steps=(step,))).mistake()
            return mistake is None and not np.array_equal(self.outputs(step), self.right)
        except mizzen.MizzenError:
            return False


@pytest.fixture(scope="module", params=ACCELERATORS)
def proved(request: pytest.FixtureRequest) -> Proved:
    return Proved(request.param)


def test_what_is_right_holds(proved: Proved) -> None:
    run = proved.run()
    assert run.mistake() is None
    proof = run.proof()
    assert (proof.inputs, proof.parts, proof.equal) == (16, 1, 1)
    assert proof.unproved == proof.bounded == ()


def test_bytes_of_constants_are_not_missed(proved: Proved) -> None:
    rng = np.random.default_rng(6)
    program = proved.step.program
    (region,) = program.constants
    missed = 0
    for _ in range(PLANTED):
        data = program.constants[region].copy()
        data[rng.integers(len(data))] ^= np.uint8(0x80)
        missed += proved.is_missed(replace(program, constants={region: data}))
    assert missed <= PLANTED // 10


def test_words_of_the_stream_are_not_missed(proved: Proved) -> None:
    rng = np.random.default_rng(7)
    program = proved.step.program
    for _ in range(PLANTED):
        words = program.words.copy()
        words[rng.integers(len(words))] ^= np.uint32(1 << rng.integers(16, 32))
        assert not proved.is_missed(replace(program, words=words))


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_the_file_is_velas(accelerator: str) -> None:
    artifact = mizzen.compile(DIGITS, accelerator, target_options=VELA)
    compiled = generate(DIGITS.read_bytes(), resolve(accelerator))
    assert isinstance(compiled, Compiled)
    theirs = write(read(compiled.network, SCHEMA, "theirs"), SCHEMA)
    assert unsealed(artifact.data, artifact.name) == theirs
    report = report_of(artifact)
    assert report.compiler == "Vela 5.2.0"
    assert report.proof.equal == 1
    assert report.figures["totalCycles"] == compiled.estimate.cycles, "Vela's own words are kept"
    assert report.cycles == cost_report(artifact).cycles, "and are not the estimate"
    assert any(origin.operator == 0 for stream in report.origins for origin in stream.values())


def sum_of_two_axes() -> bytes:
    """Vela gives the sum along one of them."""
    net = NetworkBuilder()
    x, y = (net.tensor(name, (1, 4, 4, 8), "int8", 0.05, 3) for name in "xy")
    total = net.tensor("total", (1, 1, 1, 8), "int8", 0.4, -3)
    both = net.tensor("both", (1, 4, 4, 8), "int8", 0.05, 3)
    net.operator("ADD", [x, y], [both], ("AddOptions", {}))
    axes = net.constant("axes", np.array([1, 2], np.int32))
    net.operator("SUM", [both, axes], [total], ("ReducerOptions", {"keep_dims": True}))
    return net.finish([x, y], [total])


WRONG = (
    "error[E307]: Vela's code must compute what the network does, and that for SUM, or for an "
    'operator before it, does not: "total" differs from the reference\n'
    '  at   model.tflite, operator 1 SUM -> "total"\n'
    f"{HELP}, or compile with --allow-inexact"
)


def test_wrong_code_is_an_error_at_its_operator() -> None:
    assert error(sum_of_two_axes(), "ethos-u55-128", target_options=VELA) == WRONG


def test_wrong_code_may_be_asked_for() -> None:
    data = sum_of_two_axes()
    artifact = mizzen.compile(data, "ethos-u55-128", target_options=VELA, allow_inexact=True)
    report = report_of(artifact)
    assert report.proof.differing == ("SUM 1",)
    (warning,) = report.diagnostics
    assert warning.render().startswith("warning[W306]: Vela's code must compute what the network")


def test_the_better_is_ours_where_velas_is_wrong() -> None:
    data = sum_of_two_axes()
    report = report_of(mizzen.compile(data, "ethos-u55-128", target_options={"generator": "best"}))
    assert report.compiler == "Mizzen"
    assert report.choice is not None
    assert report.choice.reason.startswith("Vela's has none: Vela's code must compute what")


def comparison() -> bytes:
    """Whether two maps are equal, given out as a boolean, beside an ADD: it stops Vela on U55."""
    net = Net()
    same = net.map("same", "bool")
    net.operator("EQUAL", [net.sum, net.second], [same], ("EqualOptions", {}))
    return net.finish([net.first, net.second], [same, net.sum])


def test_what_stops_vela_is_said() -> None:
    assert error(comparison(), "ethos-u55-128", target_options=VELA) == (
        "error[E305]: the compiler must place every operator, and cannot: Non-passthrough "
        f"operation (And) could not run on NPU\n  at   model.tflite\n{HELP}"
    )


@pytest.mark.parametrize("cause", [Cause.CRASHED, Cause.TIME_LIMIT])
def test_a_crash_is_an_error_at_the_operator_that_is_named(
    cause: Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Stopped(cause, "the compiler crashed", "it crashed at 'total'", (), "")

    def stops(*_: Any, **__: Any) -> Stopped:
        return stopped

    monkeypatch.setattr(tflite, "generate", stops)
    assert error(sum_of_two_axes(), "ethos-u55-128", target_options=VELA) == (
        f"error[{cause.value}]: the compiler crashed\n"
        f'  at   model.tflite, operator 1 SUM -> "total"\n{HELP}'
    )


def test_variables_are_not_given_to_vela() -> None:
    assert error(delayed(), "ethos-u85-256", target_options=VELA) == (
        "error[E308]: Vela must get a network without variables and other subgraphs, and this one "
        "has CALL_ONCE\n"
        f"  at   model.tflite, operator 0 CALL_ONCE\n{HELP}"
    )


def test_operators_of_types_that_were_to_stay_are_on_the_cpu() -> None:
    data = sum_of_two_axes()
    artifact = mizzen.compile(data, "ethos-u55-128", ignore_ops=["SUM"], target_options=VELA)
    assert regions(artifact) == [("ADD", "NPU"), ("SUM", "CPU")]
    (row,) = report_of(artifact).on_cpu
    assert [reason.rule for reason in row.reasons] == ["asked-for"]
    rng = np.random.default_rng(0)
    given = [rng.integers(-128, 128, (1, 4, 4, 8), np.int8) for _ in range(2)]
    (expected,) = CpuKernels(data).run([row[np.newaxis] for row in given], 1)
    assert np.array_equal(artifact.run(*given), expected[0])


def test_what_the_cpu_gives_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    data = sum_of_two_axes()
    model = read_network(data, "net")
    compiled = generate(data, resolve("ethos-u55-128", ignore_ops=["SUM"]))
    assert isinstance(compiled, Compiled)
    network = read_network(compiled.network, "net")
    truth = NetworkTruth(model, lower(model), ProofOptions(), {})
    contents = contents_of(network)
    tensors = tensors_of(model, network)
    assert VelaRun(truth, network, contents, tensors).mistake() is None
    other = next(step for step in contents.steps if not isinstance(step, NpuStep))
    assert isinstance(other, CpuStep)
    right = other.kernels.run

    def one_more(inputs: list[np.ndarray], count: int) -> list[np.ndarray]:
        return [array + 1 for array in right(inputs, count)]

    monkeypatch.setattr(other.kernels, "run", one_more)
    found = VelaRun(truth, network, contents, tensors).mistake()
    assert found == Mistake('"total" differs from the reference', model.main.outputs[0])


def test_a_pytorch_program_has_no_velas_code() -> None:
    torch = pytest.importorskip("torch")
    from mizzen.compiler.ethos_u.makers import region_compiler
    from mizzen.targets.ethos_u.machine.config import Generator

    assert torch
    configuration = replace(resolve("ethos-u85-256"), generator=Generator.VELA)
    with pytest.raises(mizzen.MizzenError) as caught:
        region_compiler(configuration)
    assert str(caught.value) == (
        "error[E308]: Vela's code must be asked for of a TFLite or TOSA file, and this network is "
        "none\n  help leave out `--generator vela`: Mizzen's own code needs no Vela"
    )
