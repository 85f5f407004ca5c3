"""Where Vela's code is wrong: the reference decides, and ours is taken if it agrees with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.cli.placement import code_text
from mizzen.compiler.ethos_u.generator import search
from mizzen.conformance.cases import cases
from mizzen.cpu.tflm import CpuKernels
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.code import Verdict
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.machine.commands import decode, encode
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of
from mizzen.targets.ethos_u.vela import generate as vela

from ...targets.ethos_u.generator.test_lower_operators import (  # noqa: TID252 tests are no package with a name
    rescaling_relu6,
    two_biases,
)
from .networks import Net, regions, report_of
from .test_tflite import reduced

pytestmark = pytest.mark.usefixtures("searched_anew")

U55 = "ethos-u55-128"
Build = Callable[[], bytes]


def compiled(data: bytes, generator: str = "best", accelerator: str = U55) -> mizzen.Artifact:
    return mizzen.compile(data, accelerator, target_options={"generator": generator})


def same_as_kernels(data: bytes, artifact: mizzen.Artifact, count: int = 8) -> bool:
    rng = np.random.default_rng(3)
    limits = [np.iinfo(row.dtype) for row in artifact.inputs]
    inputs = [
        rng.integers(limit.min, limit.max, (count, *row.shape), endpoint=True).astype(row.dtype)
        for row, limit in zip(artifact.inputs, limits, strict=True)
    ]
    found = artifact.run(*inputs)
    every = found if isinstance(found, tuple) else (found,)
    wanted = CpuKernels(data).run(inputs)
    return all(
        np.array_equal(ours.reshape(theirs.shape), theirs)
        for ours, theirs in zip(every, wanted, strict=True)
    )


def is_of_bytes(artifact: mizzen.Artifact) -> bool:
    return artifact.inputs[0].dtype == np.uint8


def conforming(name: str) -> Build:
    """Return what builds a network of the conformance suite."""
    return next(row for row in cases() if row.name == name).build


DEFECTS: dict[str, Build] = {
    "sum of two axes": conforming("sum_1x3x3x5_axes12_int8_dropped"),
    "sum of three axes": conforming("sum_1x3x4x5_axes123_int8"),
    "dropped axis": partial(reduced, "REDUCE_MAX", (3,), keep_dims=False),
    "unsigned transposition": conforming("transpose_0312_uint8"),
    "confused biases": two_biases,
    "rescaling clamp": rescaling_relu6,
}
"""Networks that Vela is known to get wrong, all of operators that our rules take."""


@pytest.mark.parametrize("accelerator", [U55, "ethos-u65-512"])
@pytest.mark.parametrize("build", DEFECTS.values(), ids=DEFECTS)
def test_what_vela_gets_wrong_is_on_the_npu_by_our_rules(build: Build, accelerator: str) -> None:
    data = build()
    artifact = compiled(data, "best", accelerator)
    assert {device for _, device in regions(artifact)} == {"NPU"}
    if not is_of_bytes(artifact):  # TRANSPOSE has no kernel for them; the proof has a reference
        assert same_as_kernels(data, artifact)
    report = report_of(artifact)
    (choice,) = report.code
    assert choice.verdict is Verdict.CORRECTED
    assert choice.operations == "our own rules"
    kinds = ", ".join(dict.fromkeys(kind for kind, _ in regions(artifact) if kind != "ADD"))
    assert choice.reason == f"Vela's code gets {kinds} wrong"
    assert code_text(choice).endswith(choice.reason)
    assert report.proof.equal == 1
    assert not report.diagnostics
    theirs = compiled(data, "vela", accelerator)
    assert "CPU" in {device for _, device in regions(theirs)}


def divided_product() -> bytes:
    """MUL of int32, which Vela gets wrong, and DIV, which is the CPU's."""
    net = NetworkBuilder("divided")
    shape = (1, 5, 6, 7)
    x, y, z = (net.tensor(name, shape, "int32", 1.0) for name in "xyz")
    product, result = (net.tensor(name, shape, "int32", 1.0) for name in ("product", "result"))
    net.operator("MUL", [x, y], [product], ("MulOptions", {}))
    net.operator("DIV", [product, z], [result], ("DivOptions", {}))
    return net.finish([x, y, z], [result])


def test_where_our_rules_do_not_take_the_network_it_is_said_why() -> None:
    artifact = compiled(divided_product())
    (warning,) = (row for row in report_of(artifact).diagnostics if row.code == "W307")
    assert str(warning.help).endswith(
        "Mizzen's own code cannot take its place: DIV 1: no rule has a form of DIV"
    )


def wide_product() -> bytes:
    """MUL of int16, of so many numbers that Vela's scale gives some of them one step off."""
    net = NetworkBuilder("product")
    shape = (1, 16, 16, 16)
    x = net.tensor("x", shape, "int16", 0.000123)
    y = net.tensor("y", shape, "int16", 0.000217)
    made = net.tensor("made", shape, "int16", 0.0013)
    net.operator("MUL", [x, y], [made], ("MulOptions", {}))
    return net.finish([x, y], [made])


@pytest.mark.parametrize("generator", ["own", "best"])
def test_the_reference_decides_where_nobody_knew_of_a_defect(generator: str) -> None:
    data = wide_product()
    report = report_of(artifact := compiled(data, generator))
    (choice,) = report.code
    assert choice.is_own
    assert choice.verdict is Verdict.CORRECTED
    assert choice.reason.startswith("the reference's numbers are not those of Vela's code: ")
    assert choice.reason.endswith('of 4096 numbers of "made" differ')
    assert code_text(choice).endswith(choice.reason)
    assert not report.proof.bounded
    assert same_as_kernels(data, artifact)
    assert report_of(compiled(data, "vela")).proof.bounded == ("MUL 0",)


@pytest.mark.parametrize("options", [{"prove": "off"}, {"allow_inexact": True}])
def test_without_a_proof_velas_words_are_what_ours_are_held_to(options: dict[str, Any]) -> None:
    artifact = mizzen.compile(wide_product(), U55, target_options={"generator": "own"}, **options)
    (choice,) = report_of(artifact).code
    assert choice.verdict is not Verdict.CORRECTED


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Count how often Vela compiles."""
    given: list[bytes] = []
    generate = vela.generate

    def counting(network: bytes, *positional: Any, **keywords: Any) -> Any:
        given.append(network)
        return generate(network, *positional, **keywords)

    monkeypatch.setattr(vela, "generate", counting)
    return given


def convolution() -> bytes:
    """A convolution of ten channels behind a sum."""
    net, rng = Net(), np.random.default_rng(0)
    weights = rng.integers(-127, 128, (10, 3, 3, 8)).astype(np.int8)
    layer = [net.constant("weights", weights, 0.004)]
    layer.append(net.constant("bias", rng.integers(-900, 900, 10).astype(np.int32), 0.0004))
    made = net.tensor("made", (1, 2, 2, 10), "int8", 0.2, -9)
    options = {"padding": 1, "stride_w": 1, "stride_h": 1}
    options |= {"dilation_w_factor": 1, "dilation_h_factor": 1}
    net.operator("CONV_2D", [net.sum, *layer], [made], ("Conv2DOptions", options))
    return net.finish([net.first, net.second], [made])


@pytest.mark.parametrize(
    ("build", "times"),
    [(convolution, 1), (wide_product, 1), (DEFECTS["confused biases"], 0)],
)
def test_nothing_is_compiled_twice_that_need_not_be(
    build: Build, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = counted(monkeypatch)
    artifact = compiled(build())
    assert report_of(artifact).code[0].is_own
    assert len(given) == times


def planted(program: Program, name: str, field: str, change: int) -> Program:
    """Return a program whose last command of a name has another value."""
    arch = accelerator_of(program.hardware).arch
    instructions = decode(program.words, arch)
    at = max(place for place, row in enumerate(instructions) if row.name == name)
    found = instructions[at]
    values = {**found.values, field: found.values[field] + change}
    other = replace(found.command(**values), offset_words=found.offset_words)
    words = encode([*instructions[:at], other, *instructions[at + 1 :]], arch)
    return replace(program, words=words)


MISTAKES = [
    ("SET_WEIGHT_BASE", "address", 16),
    ("SET_SCALE_BASE", "address", 16),
    ("SET_IFM_BASE0", "address", 16),
    ("SET_OFM_BASE0", "address", 16),
    ("SET_OFM_ZERO_POINT", "zero_point", 1),
    ("SET_IFM_ZERO_POINT", "zero_point", 1),
    ("SET_OFM_BLK_DEPTH_M1", "depth", -8),
    ("SET_ACTIVATION_MAX", "clip_boundary", -40),
    ("SET_KERNEL_HEIGHT_M1", "height", -1),
    ("SET_OFM_STRIDE_Y", "stride", 16),
]
OF_PLANES = (
    "SET_KERNEL_HEIGHT_M1",
    "SET_OFM_BLK_DEPTH_M1",
    "SET_OFM_STRIDE_Y",
    "SET_ACTIVATION_MAX",
)
"""What must be so for the convolution, and not for dense layers: they have one place and one block,
and do not saturate."""


@pytest.mark.parametrize(
    ("build", "mistake"),
    [
        *((convolution, row) for row in MISTAKES),
        *((two_biases, row) for row in MISTAKES if row[0] not in OF_PLANES),
    ],
)
def test_a_mistake_of_ours_is_seen(
    build: Build, mistake: tuple[str, str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference is asked where Vela's words are not to be trusted: it is no way around it."""
    made: list[Program] = []

    def wrong(*given: Any) -> Program:
        program = emit(*given)
        made.append(planted(program, *mistake))
        return made[-1]

    monkeypatch.setattr(search, "emit", wrong)
    data = build()
    artifact = compiled(data, "own")
    assert made
    assert not any(row.is_own for row in report_of(artifact).code)
    assert same_as_kernels(data, artifact)


@pytest.mark.parametrize("change", [1, 16])
def test_a_scale_that_is_wrong_in_its_last_bits_is_seen(
    change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*given: Any) -> Program:
        return planted(emit(*given), "SET_OFM_SCALE", "scale", change)

    monkeypatch.setattr(search, "emit", wrong)
    (choice,) = report_of(compiled(wide_product(), "own")).code
    assert not choice.is_corrected


def test_proved_code_that_is_wrong_is_made_again_to_be_velas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours differs from Vela's, the reference says no, and what comes is right."""
    given = counted(monkeypatch)

    def wrong(*given: Any) -> Program:
        return planted(emit(*given), "SET_OFM_ZERO_POINT", "zero_point", 1)

    monkeypatch.setattr(search, "emit", wrong)
    data = convolution()
    artifact = compiled(data, "own")
    (choice,) = report_of(artifact).code
    assert not choice.is_own
    assert choice.reason.endswith("differ")
    assert len(given) == 2
    assert same_as_kernels(data, artifact)
