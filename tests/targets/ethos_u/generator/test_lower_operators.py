"""Each operator of TFLite through our rules, bit for bit what TFLite Micro's kernels give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mizzen.conformance.cases import cases
from mizzen.conformance.exceptions import EXCUSES
from mizzen.conformance.networks import Case
from mizzen.cpu.tflm import CpuKernels
from mizzen.package.tflite.builder import NetworkBuilder

from .lowered_networks import differing, rules_for, stimuli

BY_OPERATOR: dict[str, list[Case]] = defaultdict(list)
for _case in cases():
    BY_OPERATOR[_case.operator].append(_case)

WHOLE = (
    "ABS ADD ARG_MAX AVERAGE_POOL_2D BATCH_MATMUL CONCATENATION CONV_2D DEPTHWISE_CONV_2D ELU EXP "
    "EXPAND_DIMS FULLY_CONNECTED GATHER GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC MAXIMUM "
    "MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG PACK PAD PADV2 PRELU QUANTIZE REDUCE_MAX "
    "REDUCE_MIN RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR "
    "RESIZE_NEAREST_NEIGHBOR RSQRT SLICE SOFTMAX SPLIT SPLIT_V SQUARED_DIFFERENCE SQUEEZE "
    "STRIDED_SLICE SUB SUM TANH TILE TRANSPOSE TRANSPOSE_CONV UNPACK"
)
"""Operators that have rules."""

REFUSED = {
    "batch_matmul_int16",
    "batch_matmul_uint8",
    "elu_table_1x5x7x9_int16",
    "elu_table_1x5x7x9_uint8",
    "gelu_table_1x5x7x9_int16",
    "gelu_table_approximate_1x5x7x9_int16",
    "log_table_1x5x7x9_uint8",
    "quantize_int32_int16",
    "quantize_int32_int8",
    "resize_bilinear_odd_ratio",
    "rsqrt_table_1x5x7x9_uint8",
}
"""Cases of these that no rule takes."""


@pytest.mark.parametrize("operator", WHOLE.split())
def test_an_operator_is_what_the_kernels_compute(operator: str) -> None:
    for case in BY_OPERATOR[operator]:
        lowered = rules_for(case.build(), case.name).lowered
        assert (lowered.sequence is None) == (case.name in REFUSED), case.name
        if lowered.sequence is not None:
            assert not any(differing(case) or ()), case.name


WHOLE_NETWORKS = (
    "ad01_int8",
    "hello_world_int8",
    "kws_micronet_m",
    "kws_ref_model",
    "micro_speech_quantized",
    "person_detect",
    "pretrainedResnet_quant",
    "rnnoise_INT8",
    "vww4_128_128_INT8",
    "vww_96_int8",
    "yolo-fastest_192_face_v4",
)


@pytest.mark.parametrize("name", WHOLE_NETWORKS)
def test_a_network_is_whole_and_what_the_kernels_compute(
    name: str, model_file: Callable[[str], Path]
) -> None:
    data = model_file(f"{name}.tflite").read_bytes()
    rules = rules_for(data, name)
    inputs = stimuli(rules.model, 1)
    wanted = CpuKernels(data).run([row[None] for row in inputs])
    for one, other in zip(rules.run(inputs), wanted, strict=True):
        assert (one == other[0]).all()


@pytest.mark.parametrize(
    "title",
    [
        "SUM over two axes",
        "SUM with different input and output scales",
        "MUL, int16",
        "TRANSPOSE, uint8",
        "TRANSPOSE, int32, deprecated core",
        "UNPACK along the last axis, deprecated core",
    ],
)
def test_defects_of_the_compilers_are_not_ours(title: str) -> None:
    """What is documented as an exception of Vela's code is exact in our own."""
    (excuse,) = (row for row in EXCUSES if row.title == title)
    excused = [
        case
        for operator in excuse.operators
        for case in BY_OPERATOR[operator]
        if case.dtype in excuse.dtypes
        and (not excuse.networks or any(part in case.name for part in excuse.networks))
    ]
    assert excused
    for case in excused:
        assert not any(differing(case) or ()), case.name


def two_biases() -> bytes:
    """Two dense layers with the same weights and scales, and other biases."""
    net = NetworkBuilder("two")
    weights = np.random.default_rng(1).integers(-127, 128, (8, 8)).astype(np.int8)
    value = x = net.tensor("x", (1, 8), "int8", 0.05, 3)
    for place in (1, 2):
        made = net.tensor(f"y{place}", (1, 8), "int8", 0.05, 3)
        numbers = np.arange(8, dtype=np.int32) * 500 * place
        layer = [
            net.constant(f"weights{place}", weights, 0.01),
            net.constant(f"bias{place}", numbers, 0.0005),
        ]
        net.operator("FULLY_CONNECTED", [value, *layer], [made], ("FullyConnectedOptions", {}))
        value = made
    return net.finish([x], [value])


def rescaling_relu6() -> bytes:
    """RELU6 whose output has another scale than its input: the kernel clamps the integers."""
    net = NetworkBuilder("relu6")
    x = net.tensor("x", (1, 4, 4, 5), "int8", 0.05, -4)
    y = net.tensor("y", (1, 4, 4, 5), "int8", 0.03, -20)
    net.operator("RELU6", [x], [y])
    return net.finish([x], [y])


@pytest.mark.parametrize("build", [two_biases, rescaling_relu6])
def test_networks_that_the_compiler_gets_wrong_are_right(build: Callable[[], bytes]) -> None:
    data = build()
    rules = rules_for(data, "network")
    inputs = stimuli(rules.model, 2)
    (wanted,) = CpuKernels(data).run([row[None] for row in inputs])
    assert (rules.run(inputs)[0] == wanted[0]).all()
