"""The proof of TFLite networks: what is right holds, what is planted is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mizzen.compiler.ethos_u.vela.cpu_fallback import compile_with_cpu_fallback
from mizzen.compiler.ethos_u.vela.findings import Findings
from mizzen.compiler.ethos_u.vela.proof import NetworkProof

import mizzen
from mizzen.artifact.execution import Contents
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.cli.placement import proof_text
from mizzen.compiler.ethos_u.bounds import bounds_of
from mizzen.compiler.proof.options import ProofOptions
from mizzen.cpu import litert
from mizzen.cpu.litert import LiteRtKernels
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite.lower import lower
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report import read_sidecar
from mizzen.targets.ethos_u.machine.commands import Arch, decode
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

from ..networks import report_of  # noqa: TID252 tests are no package with a name

DIGITS = Path(__file__).parents[4] / "examples" / "digits" / "digits.tflite"
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
PLANTED = 40


class Proved:
    """The digits' network, compiled, and its proof."""

    def __init__(self, accelerator: str) -> None:
        data = DIGITS.read_bytes()
        model = read_network(data, DIGITS.name)
        self.compiled = compile_with_cpu_fallback(model, data, resolve(accelerator)).compiled
        self.network = read_network(self.compiled.network, DIGITS.name)
        self.contents = contents_of(self.network)
        (step,) = self.contents.steps
        assert isinstance(step, NpuStep)
        self.step = step
        self.proof = NetworkProof(model, lower(model), ProofOptions(), bounds_of(model))
        rng = np.random.default_rng(5)
        (taken,) = step.program.inputs
        self.inputs = rng.integers(-128, 128, (64, *taken.shape), np.int8)
        self.right = self.outputs(step)

    def outputs(self, step: NpuStep) -> np.ndarray:
        (found,) = step.simulator.run([self.inputs], len(self.inputs)).outputs
        return found

    def check(self, contents: Contents | None = None) -> Findings:
        return self.proof.check(self.compiled, self.network, contents or self.contents)

    def is_missed(self, program: Program) -> bool:
        """Whether the proof says nothing of a program that gives something else."""
        step = NpuStep(self.step.family, replace(self.step.part, program=program))
        try:
            holds = self.check(replace(self.contents, steps=(step,))).holds
            return holds and not np.array_equal(self.outputs(step), self.right)
        except MizzenError:
            return False


@pytest.fixture(scope="module", params=ACCELERATORS)
def proved(request: pytest.FixtureRequest) -> Proved:
    return Proved(request.param)


def test_what_is_right_holds(proved: Proved) -> None:
    found = proved.check()
    assert found.holds
    assert (found.proof.inputs, found.proof.parts, found.proof.equal) == (16, 1, 1)
    assert found.proof.watched >= 7
    assert found.proof.unproved == found.proof.bounded == ()


def test_bits_of_constants_are_not_missed(proved: Proved) -> None:
    rng = np.random.default_rng(6)
    program = proved.step.program
    (region,) = program.constants
    right = program.constants[region]
    for _ in range(PLANTED):
        data = right.copy()
        data[rng.integers(len(data))] ^= np.uint8(1 << rng.integers(8))
        assert not proved.is_missed(replace(program, constants={region: data}))


def test_words_of_the_stream_are_not_missed(proved: Proved) -> None:
    rng = np.random.default_rng(7)
    program = proved.step.program
    missed = 0
    for _ in range(PLANTED):
        words = program.words.copy()
        words[rng.integers(len(words))] ^= np.uint32(1 << rng.integers(16, 32))
        missed += proved.is_missed(replace(program, words=words))
    assert missed == 0


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_a_weight_that_no_input_shows_is_found(accelerator: str) -> None:
    """Vela's constants themselves are compared: here the bias of one channel is one more."""
    proved = Proved(accelerator)
    encoded = proved.step.simulator.plan.encoded
    row = next(iter(encoded.values()))
    row.scales.bias[0] += 1
    try:
        found = proved.check()
    finally:
        row.scales.bias[0] -= 1
    (wrong,) = found.wrong.values()
    assert (wrong.differing, wrong.steps) == (1, 1)
    assert proved.check().holds


def fully_connected() -> bytes:
    """One whose scales multiply to another multiplier in single precision: a sum may be one off."""
    net = NetworkBuilder()
    rng = np.random.default_rng(4)
    source = net.tensor("x", (1, 16), "int8", 0.1, 3)
    weights = net.constant("w", rng.integers(-127, 128, (1, 16), np.int8), scale=0.007)
    bias = net.constant("b", np.array([300], np.int32), scale=0.1 * 0.007)
    result = net.tensor("y", (1, 1), "int8", 0.4, 5)
    net.operator(
        "FULLY_CONNECTED", [source, weights, bias], [result], ("FullyConnectedOptions", {})
    )
    return net.finish([source], [result])


def test_an_output_that_is_always_one_more_is_no_rounding() -> None:
    data = fully_connected()
    model = read_network(data, "net")
    compiled = compile_with_cpu_fallback(model, data, resolve("ethos-u55-128")).compiled
    network = read_network(compiled.network, "net")
    contents = contents_of(network)
    (step,) = contents.steps
    assert isinstance(step, NpuStep)
    proof = NetworkProof(model, lower(model), ProofOptions(), bounds_of(model))
    assert proof.bounds, "the scales must be such that the kernel and the stream may differ"
    assert proof.check(compiled, network, contents).holds
    (encoded,) = step.simulator.plan.encoded.values()
    encoded.scales.bias[0] += 1
    assert list(proof.check(compiled, network, contents).wrong) == [0]
    encoded.scales.bias[0] -= 1
    encoded.scales.multiplier[0] += 1 << 23
    assert list(proof.check(compiled, network, contents).wrong) == [0]
    encoded.scales.multiplier[0] -= 1 << 23
    words = step.program.words.copy()
    place = next(row for row in decode(words, Arch.U55) if row.name == "SET_OFM_ZERO_POINT")
    words[place.offset_words] += 1 << 16
    other = NpuStep(step.family, replace(step.part, program=replace(step.program, words=words)))
    assert not proof.check(compiled, network, replace(contents, steps=(other,))).holds


def test_the_report_says_what_was_proved(tmp_path: Path) -> None:
    artifact = mizzen.compile(DIGITS, "ethos-u55-128")
    proof = report_of(artifact).proof
    assert (proof.inputs, proof.seed, len(proof.digest)) == (16, 20, 64)
    again = report_of(mizzen.compile(DIGITS, "ethos-u55-128")).proof
    assert again == proof
    artifact.save(tmp_path / artifact.name)
    kept = read_sidecar(tmp_path / artifact.name, artifact.data)
    assert kept is not None
    assert kept.proof == proof
    assert report_of(mizzen.compile(DIGITS, "ethos-u55-128", prove="thorough")).proof.inputs == 64
    assert report_of(mizzen.compile(DIGITS, "ethos-u55-128", prove="off")).proof.inputs == 0


def rescaled_sum() -> bytes:
    """SUM to another scale, which the stream rounds to nearest and the kernel away from zero."""
    net = NetworkBuilder()
    source = net.tensor("x", (1, 6, 5, 7), "int8", 0.05, 3)
    axes = net.constant("axes", np.array([3], np.int32))
    result = net.tensor("y", (1, 6, 5, 1), "int8", 0.15, 3)
    net.operator("SUM", [source, axes], [result], ("ReducerOptions", {"keep_dims": True}))
    return net.finish([source], [result])


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_what_differs_goes_to_the_cpu_with_the_numbers(accelerator: str) -> None:
    report = report_of(mizzen.compile(rescaled_sum(), accelerator))
    (row,) = report.on_cpu
    (reason,) = row.reasons
    assert reason.rule == "proof"
    assert "values differ, the first at [0, " in reason.message
    (warning,) = report.diagnostics
    assert warning.code == "W307"
    assert warning.message.startswith("SUM is on the CPU: the compiler's code for this SUM gives")


def test_what_differs_stays_if_the_user_says_so() -> None:
    report = report_of(mizzen.compile(rescaled_sum(), "ethos-u55-128", allow_inexact=True))
    assert not report.on_cpu
    (warning,) = report.diagnostics
    assert warning.code == "W306"
    assert report.proof.differing == ("SUM 0",)


@pytest.mark.parametrize("generator", ["vela", "best"])
def test_documented_roundings_are_known(generator: str) -> None:
    net = NetworkBuilder()
    source = net.tensor("x", (1, 40, 64), "int16", 10 / 32768)
    softmax = net.tensor("softmax", (1, 40, 64), "int16", 1 / 32768)
    result = net.tensor("y", (1, 40, 64), "int16", 1 / 32768)
    net.operator("SOFTMAX", [source], [softmax], ("SoftmaxOptions", {"beta": 1.0}))
    net.operator("ADD", [softmax, softmax], [result], ("AddOptions", {}))
    report = report_of(
        mizzen.compile(
            net.finish([source], [result]),
            "ethos-u55-128",
            prove="thorough",
            target_options={"generator": generator},
        )
    )
    assert not report.on_cpu
    assert report.proof.bounded in ((), ("SOFTMAX 0",))
    assert not report.proof.unproved


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_multipliers_of_single_precision_are_no_mistake(accelerator: str) -> None:
    """The compiler multiplies the scales of FULLY_CONNECTED so; only some channels then differ."""
    rng = np.random.default_rng(8)
    net = NetworkBuilder()
    source = net.tensor("x", (1, 32), "int8", 0.0473)
    scales = [float(row) for row in rng.uniform(0.001, 0.02, 24)]
    weights = net.constant("w", rng.integers(-127, 128, (24, 32), np.int8), scales)
    result = net.tensor("y", (1, 24), "int8", 0.31)
    net.operator("FULLY_CONNECTED", [source, weights, -1], [result], ("FullyConnectedOptions", {}))
    report = report_of(mizzen.compile(net.finish([source], [result]), accelerator))
    assert not report.on_cpu


def unsigned_product() -> bytes:
    """A product of unsigned matrices, which neither kernels nor graph compute."""
    net = NetworkBuilder()
    source, product = (net.tensor(name, (1, 8, 8), "uint8", 0.1, 128) for name in ("x", "y"))
    net.operator("BATCH_MATMUL", [source, source], [product], ("BatchMatMulOptions", {}))
    return net.finish([source], [product])


def sum_and_products() -> bytes:
    net = NetworkBuilder()
    names = ("x", "sum", "y", "z")
    x, total, y, z = (net.tensor(name, (1, 8, 8), "uint8", 0.1, 128) for name in names)
    net.operator("ADD", [x, x], [total], ("AddOptions", {}))
    net.operator("BATCH_MATMUL", [total, x], [y], ("BatchMatMulOptions", {}))
    net.operator("BATCH_MATMUL", [total, total], [z], ("BatchMatMulOptions", {}))
    return net.finish([x], [total, y, z])


def test_what_nothing_else_computes_is_not_called_proved() -> None:
    report = report_of(mizzen.compile(unsigned_product(), "ethos-u85-256"))
    assert not report.on_cpu
    assert report.proof.equal == 0
    (said,) = report.proof.unproved
    assert said.startswith(
        '"y" (BATCH_MATMUL 0) because neither TensorFlow Lite Micro nor LiteRT has a kernel that '
        'takes it (the first says "'
    )
    (warning,) = [each for each in report.diagnostics if each.code == "W308"]
    assert warning.message == f"1 result was not compared: {said}"
    assert proof_text(report.proof) == f"none; {warning.message}"


def test_what_was_compared_is_told_beside_what_was_not() -> None:
    report = report_of(mizzen.compile(sum_and_products(), "ethos-u85-256"))
    assert [each.split(" because ")[0] for each in report.proof.unproved] == [
        '"y" (BATCH_MATMUL 1)',
        '"z" (BATCH_MATMUL 2)',
    ]
    assert report.proof.equal == 1
    said = proof_text(report.proof)
    assert said.startswith("bit-exact on 16 inputs, ")
    assert '; 2 results were not compared: "y" (BATCH_MATMUL 1) because neither ' in said


def test_without_litert_the_proof_says_who_would_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litert, "is_installed", lambda: False)
    report = report_of(mizzen.compile(extreme("ARG_MAX", "int64"), "ethos-u55-128"))
    (said,) = report.proof.unproved
    assert said.startswith('"y" (ARG_MAX 0) because TensorFlow Lite Micro has no kernel that takes')
    assert "LiteRT, which may have one, is not installed (pip install '.[litert]' in the " in said


def extreme(kind: str, result: str, shape: tuple[int, ...] = (1, 8, 8, 16)) -> bytes:
    net = NetworkBuilder()
    axis = net.constant("axis", np.array([3], np.int32))
    source, index = net.tensor("x", shape, "int8", 0.1), net.tensor("y", shape[:3], result)
    options = {"output_type": 4 if result == "int64" else 2}
    net.operator(kind, [source, axis], [index], ("ArgMaxOptions", options))
    return net.finish([source], [index])


def gelu(dtype: str, *, approximate: bool) -> bytes:
    net = NetworkBuilder()
    zero = 128 if dtype == "uint8" else 0
    source, result = (net.tensor(name, (1, 6, 5, 7), dtype, 0.05, zero) for name in ("x", "y"))
    net.operator("GELU", [source], [result], ("GeluOptions", {"approximate": approximate}))
    return net.finish([source], [result])


COMPARED_WITH_LITERT: dict[str, Callable[[], bytes]] = {
    "ARG_MAX to int64": lambda: extreme("ARG_MAX", "int64"),
    "GELU int8": lambda: gelu("int8", approximate=False),
    "GELU int8, by tanh": lambda: gelu("int8", approximate=True),
    "GELU uint8": lambda: gelu("uint8", approximate=False),
    "GELU uint8, by tanh": lambda: gelu("uint8", approximate=True),
}


@pytest.mark.parametrize("name", COMPARED_WITH_LITERT)
@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_what_litert_has_a_kernel_for_is_compared_with_it(name: str, accelerator: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    data = COMPARED_WITH_LITERT[name]()
    artifact = mizzen.compile(data, accelerator)
    report = report_of(artifact)
    assert not report.on_cpu
    assert report.proof.unproved == report.diagnostics == ()
    assert report.proof.compares
    source = artifact.inputs[0]
    info = np.iinfo(source.dtype)
    given = np.random.default_rng(4).integers(info.min, info.max, (2, *source.shape), source.dtype)
    theirs = LiteRtKernels(data).run([given])[0].astype(np.int64)
    steps = 1 if report.proof.bounded else 0
    assert np.abs(artifact.run(given) - theirs).max() <= steps


def test_code_that_faults_under_no_operators_name_goes_to_the_cpu() -> None:
    """Vela gives wide results of U65 too little memory, and its debug database no command."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    artifact = mizzen.compile(extreme("ARG_MAX", "int64", (1, 3, 3, 5)), "ethos-u65-256")
    (reason,) = report_of(artifact).on_cpu[0].reasons
    assert reason.message == (
        "the compiler's code for this ARG_MAX cannot be executed: OP_ELEMENTWISE: bytes 0..72 must "
        "lie in region 1, which has 48 bytes"
    )
    given = np.random.default_rng(3).integers(-128, 128, (1, 3, 3, 5)).astype(np.int8)
    assert np.array_equal(artifact.run(given), given.argmax(-1))
