"""Outputs whose scale the kernels fix: an NPU that takes it for given would be off by a factor.

Both kernels of TensorFlow Lite refuse such files, and what the file's scale means is known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.conformance.networks import Q, one
from mizzen.cpu.litert import LiteRtKernels
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.package.tflite.builder import NetworkBuilder

from .networks import report_of

ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256", "ethos-n78-4tops-4ple")
SHAPE = (1, 4, 20)
OPTIONS = {"SOFTMAX": ("SoftmaxOptions", {"beta": 1.0})}
INPUTS = {"int8": Q(0.05, 3), "int16": Q(1 / 4096), "uint8": Q(0.05, 120)}

REFUSED = {
    ("TANH", "int16"): (1e-4, 1 / 16384, 2e-5, 5e-5, 1 / 32000),
    ("LOGISTIC", "int16"): (1e-4, 1 / 16384, 2e-5, 5e-5, 1 / 32000),
    ("SOFTMAX", "int16"): (1e-4, 1 / 16384, 2e-5, 5e-5, 1 / 32000),
    ("SOFTMAX", "int8"): (1 / 128, 1 / 512, 0.005, 0.01, 1 / 255),
}
"""Scales by operator and type that both kernels refuse."""

SCALES = [(*key, scale) for key, scales in REFUSED.items() for scale in scales]


def network(kind: str, dtype: str, scale: float, zero_point: int = 0) -> bytes:
    zero = -128 if dtype == "int8" else zero_point
    options = OPTIONS.get(kind)
    return one(kind, kind, [SHAPE], [SHAPE], dtype, options, in_q=[INPUTS[dtype]],
               out_q=Q(scale, zero)).build()  # fmt: skip


def numbers(dtype: str, count: int = 3) -> np.ndarray[Any, Any]:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(9)
    return rng.integers(info.min, info.max, (count, *SHAPE), endpoint=True).astype(dtype)


@pytest.mark.parametrize(("kind", "dtype", "scale"), SCALES)
def test_the_kernels_refuse_the_scale(kind: str, dtype: str, scale: float) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    data = network(kind, dtype, scale)
    with pytest.raises(MizzenError, match="E702"):
        CpuKernels(data).run([numbers(dtype)])
    with pytest.raises(MizzenError, match="E722"):
        LiteRtKernels(data).run([numbers(dtype)])


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize(("kind", "dtype"), REFUSED)
def test_it_is_refused_with_the_reason_and_never_computed_by_another_scale(
    kind: str, dtype: str, accelerator: str
) -> None:
    for scale in REFUSED[kind, dtype][:2]:
        artifact = mizzen.compile(network(kind, dtype, scale), accelerator)
        (placement,) = report_of(artifact).on_cpu
        if "ethos-u" in accelerator:
            (reason,) = placement.reasons
            assert reason.rule == "fixed-scale"
            zero = -128 if dtype == "int8" else 0
            assert (
                f"and has {np.float32(scale):.6g} and {zero} for {dtype.upper()}" in reason.message
            )
        assert "W309" in {row.code for row in report_of(artifact).diagnostics}
        with pytest.raises(MizzenError, match="E702") as caught:
            artifact.run(numbers(dtype)[0])
        assert caught.value.diagnostic.origin is not None
        assert caught.value.diagnostic.origin.kind == kind


def test_the_reason_in_full() -> None:
    (placement,) = report_of(mizzen.compile(network("TANH", "int16", 1e-4), "ethos-u85-256")).on_cpu
    (reason,) = placement.reasons
    assert reason.message == (
        "TANH must have an output of scale 1/256, where it has 8 bits, "
        "or 1/32768 and zero point 0, and has 0.0001 and 0 for INT16"
    )
    assert reason.help == (
        "quantise its output so, as TensorFlow Lite's kernels ask for, and QUANTIZE after it"
    )


@pytest.mark.parametrize("accelerator", ACCELERATORS[:3])
@pytest.mark.parametrize(("kind", "dtype"), REFUSED)
def test_what_the_reason_says_to_do_is_exact_on_the_npu(
    kind: str, dtype: str, accelerator: str
) -> None:
    net = NetworkBuilder()
    given, fixed = INPUTS[dtype], 1 / 256 if dtype == "int8" else 1 / 32768
    zero = -128 if dtype == "int8" else 0
    x = net.tensor("x", SHAPE, dtype, given.scale, given.zero_point)
    middle = net.tensor("middle", SHAPE, dtype, fixed, zero)
    y = net.tensor("y", SHAPE, dtype, 1.7 * fixed, zero)
    net.operator(kind, [x], [middle], OPTIONS.get(kind))
    net.operator("QUANTIZE", [middle], [y], ("QuantizeOptions", {}))
    data = net.finish([x], [y])
    artifact = mizzen.compile(data, accelerator)
    assert not report_of(artifact).on_cpu
    expected = CpuKernels(data).run([numbers(dtype)])[0].astype(int)
    steps = 1 if report_of(artifact).proof.bounded else 0
    assert np.abs(artifact.run(numbers(dtype)) - expected).max() <= steps


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", ["S3b_tanh16_out0.00010", "S3b_tanh16_out0.00006"])
def test_files_of_others_give_what_their_scale_means_or_nothing(
    cases: Path, name: str, accelerator: str
) -> None:
    artifact = mizzen.compile(cases / f"{name}.tflite", accelerator)
    with np.load(cases / f"{name}.npz") as right:
        try:
            found = artifact.run(right["input_0"])
        except MizzenError as error:
            assert error.diagnostic.code == "E702"  # noqa: PT017 either is right
            assert "kernels/tanh.cc" in error.diagnostic.message  # noqa: PT017
        else:
            assert np.array_equal(found, right["output_0"])


@pytest.mark.parametrize("accelerator", ACCELERATORS[:3])
def test_scales_of_unsigned_bytes_that_the_file_states_are_read(accelerator: str) -> None:
    """TANH and LOGISTIC of UINT8 are tables of what the file says, in the kernels too."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    for kind, scale, zero in (("TANH", 0.011, 100), ("TANH", 0.005, 130), ("LOGISTIC", 1 / 256, 9)):
        data = network(kind, "uint8", scale, zero)
        artifact = mizzen.compile(data, accelerator)
        assert not report_of(artifact).on_cpu
        theirs = LiteRtKernels(data).run([numbers("uint8")])[0]
        assert np.array_equal(artifact.run(numbers("uint8")), theirs)


NOT_READ = (
    ("TANH", 1 / 64, 0), ("TANH", 1 / 128, 3), ("TANH", 1 / 300, 0), ("LOGISTIC", 1 / 128, -128),
    ("LOGISTIC", 1 / 400, -128), ("L2_NORMALIZATION", 1 / 64, 0), ("L2_NORMALIZATION", 1 / 128, 4),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "scale", "zero"), NOT_READ)
@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_a_scale_that_the_kernel_does_not_read_is_told(
    kind: str, scale: float, zero: int, accelerator: str
) -> None:
    """The artifact gives what a device gives, which is not what the file says."""
    options = ("L2NormOptions", {}) if kind == "L2_NORMALIZATION" else None
    data = one(kind, kind, [SHAPE], [SHAPE], "int8", options, in_q=[INPUTS["int8"]],
               out_q=Q(scale, zero)).build()  # fmt: skip
    artifact = mizzen.compile(data, accelerator)
    (row,) = [row for row in report_of(artifact).diagnostics if row.code == "W317"]
    assert f"but the network says {np.float32(scale):.6g} and {zero}" in row.message
    expected = CpuKernels(data).run([numbers("int8")])[0].astype(int)
    steps = 1 if "n78" in accelerator else 0
    assert np.abs(artifact.run(numbers("int8")) - expected).max() <= steps


def test_that_warning_in_full_and_only_where_it_is_so() -> None:
    data = one("t", "TANH", [SHAPE], [SHAPE], "int8", out_q=Q(1 / 64)).build()
    (row,) = report_of(mizzen.compile(data, "ethos-u55-128")).diagnostics
    assert row.render() == (
        "warning[W317]: TFLite Micro's kernel of TANH, and so what is compiled, computes numbers "
        "of scale 1/128 and zero point 0, but the network says 0.015625 and 0\n"
        '  at   model.tflite, operator 0 TANH -> "y0"\n'
        "  help quantise its output with scale 1/128 and zero point 0, and QUANTIZE it to what is "
        "wanted"
    )
    right = one("t", "TANH", [SHAPE], [SHAPE], "int8", out_q=Q(1 / 128)).build()
    assert not report_of(mizzen.compile(right, "ethos-u55-128")).diagnostics


@pytest.mark.parametrize("kind", ["LOGISTIC", "SOFTMAX", "TANH"])
@pytest.mark.parametrize("accelerator", ACCELERATORS[:3])
def test_a_zero_point_of_int16_is_refused_too(kind: str, accelerator: str) -> None:
    artifact = mizzen.compile(network(kind, "int16", 1 / 32768, zero_point=5), accelerator)
    (placement,) = report_of(artifact).on_cpu
    assert placement.reasons[0].actual == "3.05176e-05 and 5 for INT16"
    with pytest.raises(MizzenError, match="E702"):
        artifact.run(numbers("int16")[0])


REDUCED = [(dtype, change) for dtype in INPUTS for change in ((1.7, 0), (1.0, 5), (0.4, -3))]


@pytest.mark.parametrize(("dtype", "change"), REDUCED)
@pytest.mark.parametrize("kind", ["REDUCE_MAX", "REDUCE_MIN"])
def test_extremes_that_the_kernels_do_not_rescale_are_refused(
    kind: str, dtype: str, change: tuple[float, int]
) -> None:
    """The NPU copies the integers, whatever the output's scale and zero point."""
    given = INPUTS[dtype]
    axes, options = np.array([1], np.int32), ("ReducerOptions", {"keep_dims": True})
    made = Q(given.scale * change[0], given.zero_point + change[1])
    data = one(kind, kind, [SHAPE], [(1, 1, 20)], dtype, options, constants=[axes], in_q=[given],
               out_q=made).build()  # fmt: skip
    artifact = mizzen.compile(data, "ethos-u55-128")
    (placement,) = report_of(artifact).on_cpu
    assert [row.rule for row in placement.reasons] == ["reduced-quantisation"]
    with pytest.raises(MizzenError, match="E702"):
        artifact.run(numbers(dtype)[0])
