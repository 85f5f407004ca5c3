"""Networks by our own rules: what Vela gets wrong is right, and a mistake of ours is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.compiler.ethos_u.search import judging
from mizzen.conformance.cases import cases
from mizzen.cpu.tflm import CpuKernels
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.code import Maker
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.machine.commands import Arch, decode, encode
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of

from ...differential.test_found_by_fuzzing import (  # noqa: TID252 tests are no package with a name
    MISPLACED,
    OTHERWISE,
    with_a_part,
)
from ...targets.ethos_u.generator.test_lower_operators import (  # noqa: TID252 tests are no package with a name
    rescaling_relu6,
    two_biases,
)
from .networks import MAP, Net, regions, report_of

U55 = "ethos-u55-128"
Build = Callable[[], bytes]


def compiled(data: bytes, generator: str = "own", accelerator: str = U55) -> mizzen.Artifact:
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


def reduced(kind: str, axes: tuple[int, ...], *, keep_dims: bool) -> bytes:
    net = Net()
    extents = [1 if axis in axes else size for axis, size in enumerate(MAP)]
    shape = extents if keep_dims else [MAP[axis] for axis in range(4) if axis not in axes]
    result = net.map("least", shape=tuple(shape))
    options = ("ReducerOptions", {"keep_dims": keep_dims})
    net.operator(kind, [net.sum, net.constant("axes", np.array(axes, np.int32))], [result], options)
    return net.finish([net.first, net.second], [result])


DEFECTS: dict[str, Build] = {
    "sum of two axes": conforming("sum_1x3x3x5_axes12_int8_dropped"),
    "sum of three axes": conforming("sum_1x3x4x5_axes123_int8"),
    "dropped axis": partial(reduced, "REDUCE_MAX", (3,), keep_dims=False),
    "unsigned transposition": conforming("transpose_0312_uint8"),
    "confused biases": two_biases,
    "rescaling clamp": rescaling_relu6,
    **{name: OTHERWISE[name] for name in ("RELU6", "RELU6 int16")},
    **{f"{mover}, {kind}": partial(with_a_part, mover, kind) for mover, kind in MISPLACED},
}
"""Networks that Vela is known to get wrong, all of operators that our rules take."""


@pytest.mark.parametrize("accelerator", [U55, "ethos-u65-512", "ethos-u85-256"])
@pytest.mark.parametrize("build", DEFECTS.values(), ids=DEFECTS)
def test_what_vela_gets_wrong_is_on_the_npu_by_our_rules(build: Build, accelerator: str) -> None:
    data = build()
    artifact = compiled(data, "own", accelerator)
    assert {device for _, device in regions(artifact)} == {"NPU"}
    if not is_of_bytes(artifact):  # TRANSPOSE has no kernel for them; the proof has a reference
        assert same_as_kernels(data, artifact)
    report = report_of(artifact)
    (choice,) = report.code
    assert choice.maker is Maker.MIZZEN
    assert not choice.tried
    assert report.proof.equal == len(artifact.outputs)
    assert not report.diagnostics


def wide_product() -> bytes:
    """MUL of int16, of so many numbers that Vela's scale gives some of them one step off."""
    net = NetworkBuilder("product")
    shape = (1, 16, 16, 16)
    x = net.tensor("x", shape, "int16", 0.000123)
    y = net.tensor("y", shape, "int16", 0.000217)
    made = net.tensor("made", shape, "int16", 0.0013)
    net.operator("MUL", [x, y], [made], ("MulOptions", {}))
    return net.finish([x, y], [made])


def test_a_product_is_exact_where_velas_is_not() -> None:
    data = wide_product()
    report = report_of(artifact := compiled(data))
    assert not report.proof.bounded
    assert same_as_kernels(data, artifact)
    assert report_of(compiled(data, "vela")).proof.bounded == ("MUL 0",)


def test_a_square_whose_scale_vanishes_is_zero() -> None:
    """Its multiplier is 0: no shift of a product says so."""
    net = NetworkBuilder("square")
    x, y = (net.tensor(name, (1, 7, 8, 2), "int8", 8e-6) for name in ("x", "y"))
    made = net.tensor("made", (1, 7, 8, 2), "int8", 0.85, 3)
    net.operator("SQUARED_DIFFERENCE", [x, y], [made], ("SquaredDifferenceOptions", {}))
    data = net.finish([x, y], [made])
    artifact = compiled(data)
    assert {device for _, device in regions(artifact)} == {"NPU"}
    assert same_as_kernels(data, artifact)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0, 1.7])
def test_a_slope_of_16_bits_is_one_operation(alpha: float) -> None:
    net = NetworkBuilder("slope")
    x, y = (net.tensor(name, (1, 40, 82, 16), "int16", 0.0016) for name in ("x", "y"))
    net.operator("LEAKY_RELU", [x], [y], ("LeakyReluOptions", {"alpha": alpha}))
    data = net.finish([x], [y])
    artifact = compiled(data)
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    modes = [
        command.values["elementwise_mode"]
        for command in decode(step.program.words, Arch.U55)
        if command.name == "OP_ELEMENTWISE"
    ]
    assert modes == [ElementwiseMode.LRELU]
    assert same_as_kernels(data, artifact)


def test_a_transposed_convolution_to_a_computed_shape_is_on_the_npu() -> None:
    """The file says the shape of its output too, and its NPU operator is of that."""
    net, rng = NetworkBuilder("decoder"), np.random.default_rng(4)
    shape = net.tensor("shape", (4,), "int32")
    x = net.tensor("x", (1, 4, 5, 8), "int8", 0.02, 3)
    weights = net.constant("weights", rng.integers(-99, 100, (4, 2, 2, 8)).astype(np.int8), 0.01)
    y = net.tensor("y", (1, 8, 10, 4), "int8", 0.05, -2)
    options = {"padding": 1, "stride_w": 2, "stride_h": 2}
    net.operator("TRANSPOSE_CONV", [shape, weights, x], [y], ("TransposeConvOptions", options))
    data = net.finish([shape, x], [y])
    artifact = compiled(data)
    assert {device for _, device in regions(artifact)} == {"NPU"}
    given = rng.integers(-128, 128, (3, 1, 4, 5, 8)).astype(np.int8)
    sizes = np.tile(np.array([1, 8, 10, 4], np.int32), (3, 1))
    (wanted,) = CpuKernels(data).run([sizes, given])
    assert np.array_equal(np.asarray(artifact.run(sizes, given)).ravel(), wanted.ravel())


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


def planted(program: Program, name: str, field: str, change: int) -> Program:
    """Return a program whose last command of a name has another value."""
    arch = accelerator_of(program.hardware).arch
    instructions = decode(program.words, arch)
    places = [place for place, row in enumerate(instructions) if row.name == name]
    if not places:
        return program
    at = places[-1]
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
    ("SET_ACTIVATION_MAX", "clip_boundary", -40),
    ("SET_KERNEL_HEIGHT_M1", "height", -1),
    ("SET_OFM_STRIDE_Y", "stride", 16),
]
OF_PLANES = (
    "SET_KERNEL_HEIGHT_M1",
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
    made: list[Program] = []

    def wrong(*given: Any) -> Program:
        program = emit(*given)
        made.append(planted(program, *mistake))
        return made[-1]

    monkeypatch.setattr(judging, "emit", wrong)
    data = build()
    artifact = compiled(data)
    assert made
    report = report_of(artifact)
    assert report.on_cpu
    assert {said.code for said in report.diagnostics} == {"W307"}
    monkeypatch.undo()
    assert same_as_kernels(data, artifact)


def test_the_plain_way_is_taken_where_the_search_gives_wrong_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is wrong is passed over with the reason, and the network stays on the NPU."""
    once: list[Program] = []

    def wrong(*given: Any) -> Program:
        program = emit(*given)
        if given[0].stagings or len(once) < 1:
            once.append(program)
            return planted(program, "SET_OFM_ZERO_POINT", "zero_point", 1)
        return program

    monkeypatch.setattr(judging, "emit", wrong)
    data = convolution()
    artifact = compiled(data)
    report = report_of(artifact)
    assert not report.on_cpu
    assert same_as_kernels(data, artifact)


@pytest.mark.parametrize("change", [1, 16])
def test_a_scale_that_is_wrong_in_its_last_bits_is_seen(
    change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*given: Any) -> Program:
        return planted(emit(*given), "SET_OFM_SCALE", "scale", change)

    monkeypatch.setattr(judging, "emit", wrong)
    assert report_of(compiled(wide_product())).on_cpu
