"""The arena of TensorFlow Lite Micro, against what its interpreter used on a Cortex-M33.

The numbers are those of tflite-micro 90b983c, built with arm-none-eabi-g++ 12.2 from projects that
`mizzen export --to tflm` wrote, and executed in the emulator: what `arena_used_bytes` says, and
the smallest arena, of multiples of 16 bytes, in which `AllocateTensors` succeeds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import read_network
from mizzen.conformance.cases import cases
from mizzen.export.tflm.arena import arena_of
from mizzen.export.tflm.arena.planning import Buffer, end_of, plan
from mizzen.package.tflite.builder import NetworkBuilder

ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
#       used, least              used, least              used, least
ON_CORTEX_M33 = {
    "ad01_int8": ((1220, 1232), (18804, 18816), (1220, 1232)),
    "audio_preprocessor_int8": ((8480, 8480), (8480, 8480), (7968, 7968)),
    "dnn_s_quantized": ((1840, 1840), (2800, 2800), (1840, 1840)),
    "hello_world_int8": ((484, 816), (1060, 1072), (484, 816)),
    "kws_micronet_m": ((106916, 106928), (113844, 113856), (89012, 89024)),
    "kws_ref_model": ((22644, 22656), (22660, 22672), (16452, 16464)),
    "micro_speech_quantized": ((6420, 6432), (5508, 5520), (6420, 6432)),
    "person_detect": ((74932, 74944), (74948, 74960), (74180, 74192)),
    "pretrainedResnet_quant": ((52292, 52304), (52308, 52320), (49604, 49616)),
    "rnnoise_INT8": ((1988, 2000), (10788, 10800), (1988, 2000)),
    "vww4_128_128_INT8": ((131892, 131904), (131908, 131920), (131524, 131536)),
    "vww_96_int8": ((74932, 74944), (74948, 74960), (74180, 74192)),
    "yolo-fastest_192_face_v4": ((370040, 370048), (370056, 370064), (369176, 369184)),
}
"""By network, for each of the accelerators."""

QUICK = ("hello_world_int8", "dnn_s_quantized", "ad01_int8")
TARGETS = [
    pytest.param(name, place, marks=() if name in QUICK else pytest.mark.sweep)
    for name in ON_CORTEX_M33
    for place in range(len(ACCELERATORS))
]

OF_KERNELS = {
    "conv_1x7x9x5_o11_k3x3_s1x1_d1x1_same_int8": 1556,
    "conv_1x7x7x6_o9_k3x3_s1x1_d1x1_same_int16": 2020,
    "dw_1x9x7x11_m1_k3x3_s1x1_d1x1_same_int8": 1940,
    "dw_1x7x8x9_m1_k3x3_s1x1_d1x1_same_int16": 2548,
    "dw_1x8x8x18_m1_k3x3_s1x1_d1x1_same_uint8_per_tensor": 2900,
    "fc_1x17_o9_act0_int8": 452,
    "fc_1x40_o12_act0_int16": 516,
    "tconv_1x5x4x6_o7_k3x3_s2x2_same_int8": 3444,
    "tconv_1x5x4x6_o7_k3x3_s2x2_same_int16": 6356,
    "average_pool_2d_1x9x8x13_k3x3_s2x2_d1x1_same_int8": 1620,
    "max_pool_2d_1x9x8x13_k3x3_s2x2_d1x1_same_int8": 1620,
    "mean_1x7x6x11_axes12_int8": 948,
    "average_pool_2d_1x9x8x13_k3x3_s2x2_d1x1_same_int16": 2804,
    "max_pool_2d_1x9x8x13_k3x3_s2x2_d1x1_same_int16": 2804,
    "mean_1x7x6x11_axes12_int16": 1428,
    "reduce_max_1x6x5x7_axes1_int16": 932,
    "reduce_min_1x6x5x7_axes1_int16": 932,
    "sum_1x6x5x2_axes3_int16": 740,
    "reduce_max_1x6x5x7_axes1_uint8": 692,
    "reduce_min_1x6x5x7_axes1_uint8": 692,
    "sum_1x6x5x2_axes3_uint8": 516,
    "reduce_max_1x6x5x7_axes1_int32": 1412,
    "reduce_min_1x6x5x7_axes1_int32": 1412,
    "sum_1x6x5x2_axes3_int32": 788,
    "reduce_max_1x3x3x5_axes12_int8_dropped": 484,
    "reduce_min_1x3x3x5_axes12_int8_dropped": 484,
    "sum_1x3x3x5_axes12_int8_dropped": 516,
    "mean_1x6x6x5_axes12_uint8": 628,
    "argmax_1x4x5x9": 576,
    "lstm_int8": 1428,
    "lstm_int16": 1476,
    "batch_matmul_int16": 1108,
    "batch_matmul_adjoint": 1140,
    "argmax_uint8": 576,
    "add_1x5x6x7_1x5x6x7_int8": 1124,
    "sub_1x5x6x7_1x5x6x7_int8": 1108,
    "mul_1x5x6x7_1x5x6x7_int8": 1092,
    "add_1x5x6x7_1x5x6x7_int16": 1748,
    "sub_1x5x6x7_1x5x6x7_int16": 1732,
    "mul_1x5x6x7_1x5x6x7_int16": 1716,
    "maximum_1x5x6x7_1x5x6x7_int8": 1044,
    "maximum_1x5x6x7_1x5x6x7_int16": 1668,
    "minimum_1x5x6x7_1x5x6x7_int8": 1044,
    "minimum_1x5x6x7_1x5x6x7_int16": 1668,
    "add_1x5x6x7_1x5x6x7_uint8": 1124,
    "mul_1x5x6x7_1x5x6x7_uint8": 1092,
    "sub_1x5x6x7_1x5x6x7_uint8": 1108,
    "squared_difference_1x5x6x7_1x5x6x7_int8": 1172,
    "squared_difference_1x5x6x7_1x5x6x7_int16": 1796,
    "mul_1x5x6x7_1x5x6x7_int32": 2964,
    "maximum_1x5x6x7_1x5x6x7_int32": 2916,
    "minimum_1x5x6x7_1x5x6x7_int32": 2916,
    "squared_difference_1x5x6x7_1x5x6x7_int32": 3044,
    "maximum_1x5x6x7_1x5x6x7_uint8": 1044,
    "minimum_1x5x6x7_1x5x6x7_uint8": 1044,
    "squared_difference_1x5x6x7_1x5x6x7_uint8": 1172,
    "div_1x5x6x7_1x5x6x7_int8": 1092,
    "relu_1x5x7x9_int8": 996,
    "relu6_1x5x7x9_int8": 980,
    "abs_1x5x7x9_int8": 996,
    "relu_1x5x7x9_int16": 1636,
    "abs_1x5x7x9_int16": 1636,
    "logistic_1x5x7x9_int8": 980,
    "tanh_1x5x7x9_int8": 980,
    "logistic_1x5x7x9_int16": 1620,
    "tanh_1x5x7x9_int16": 1620,
    "logistic_1x5x7x9_uint8": 980,
    "hard_swish_1x5x7x9_int8": 980,
    "leaky_relu_1x5x7x9_int8": 996,
    "leaky_relu_1x5x7x9_int16": 1636,
    "elu_table_1x5x7x9_int8": 1220,
    "elu_table_1x5x7x9_uint8": 1220,
    "elu_table_1x5x7x9_int16": 1860,
    "hard_swish_table_1x5x7x9_uint8": 980,
    "log_table_1x5x7x9_int8": 948,
    "log_table_1x5x7x9_uint8": 948,
    "log_table_1x5x7x9_int16": 1588,
    "rsqrt_table_1x5x7x9_int8": 996,
    "rsqrt_table_1x5x7x9_uint8": 996,
    "tanh_table_1x5x7x9_uint8": 980,
    "relu_1x5x7x9_uint8": 996,
    "relu_1x5x7x9_int32": 2884,
    "relu6_1x5x7x9_uint8": 980,
    "relu6_1x5x7x9_int32": 2868,
    "abs_1x5x7x9_uint8": 996,
    "abs_1x5x7x9_int32": 2884,
    "neg_1x5x7x9_uint8": 948,
    "neg_1x5x7x9_int32": 2836,
    "relu6_1x5x7x9_int16": 1620,
    "neg_1x5x7x9_int16": 1588,
    "neg_1x5x7x9_int8": 948,
    "softmax_1x20_int16": 2564,
    "softmax_half_2x3x4x10_int8": 868,
    "quantize_rescaled_1x5x7x9_int8": 996,
    "quantize_rescaled_1x5x7x9_int16": 1636,
    "quantize_uint8_int8": 804,
    "quantize_int32_int8": 1428,
    "prelu_int8": 820,
    "reshape_int8": 612,
    "concatenation_c_int8": 1236,
    "split_v_int8": 792,
    "slice_int8": 1252,
    "strided_slice_int8": 900,
    "pad_int8": 948,
    "pack_int8": 516,
    "unpack_int8": 636,
    "squeeze_int8": 420,
    "expand_dims_int8": 388,
    "split_int8": 924,
    "transpose_0213_int8": 580,
    "reshape_int16": 836,
    "concatenation_c_int16": 2036,
    "split_v_int16": 1144,
    "slice_int16": 2148,
    "strided_slice_int16": 1316,
    "pad_int16": 1492,
    "pack_int16": 644,
    "unpack_int16": 828,
    "squeeze_int16": 484,
    "expand_dims_int16": 452,
    "split_int16": 1324,
    "transpose_0213_int16": 804,
    "reshape_uint8": 612,
    "split_v_uint8": 792,
    "slice_uint8": 1252,
    "strided_slice_uint8": 900,
    "pad_uint8": 948,
    "pack_uint8": 516,
    "unpack_uint8": 636,
    "squeeze_uint8": 420,
    "expand_dims_uint8": 388,
    "split_uint8": 924,
    "transpose_0213_uint8": 580,
    "reshape_int32": 1316,
    "concatenation_c_int32": 3620,
    "split_v_int32": 1848,
    "slice_int32": 3940,
    "strided_slice_int32": 2148,
    "pad_int32": 2596,
    "pack_int32": 884,
    "unpack_int32": 1196,
    "squeeze_int32": 612,
    "expand_dims_int32": 580,
    "split_int32": 2188,
    "transpose_0213_int32": 1284,
    "mirror_pad": 772,
    "mirror_pad_symmetric": 1140,
    "pad_v2": 964,
    "resize_nearest_neighbor_2_plain_int16": 1732,
    "resize_nearest_neighbor_2_plain_uint8": 1028,
    "resize_nearest_neighbor_odd_ratio": 772,
    "resize_bilinear_2_plain_int16": 1732,
    "resize_bilinear_2_plain_uint8": 1028,
    "resize_bilinear_odd_ratio": 772,
    "equal_1x5x6x7_1x5x6x7_int8": 1092,
    "equal_1x5x6x7_1x5x6x7_uint8": 1092,
    "equal_1x5x6x7_1x5x6x7_int32": 2340,
    "not_equal_1x5x6x7_1x5x6x7_int8": 1092,
    "not_equal_1x5x6x7_1x5x6x7_uint8": 1092,
    "not_equal_1x5x6x7_1x5x6x7_int32": 2340,
    "greater_1x5x6x7_1x5x6x7_int8": 1092,
    "greater_1x5x6x7_1x5x6x7_int16": 1508,
    "greater_1x5x6x7_1x5x6x7_uint8": 1092,
    "greater_1x5x6x7_1x5x6x7_int32": 2340,
    "greater_equal_1x5x6x7_1x5x6x7_int8": 1092,
    "greater_equal_1x5x6x7_1x5x6x7_int16": 1508,
    "greater_equal_1x5x6x7_1x5x6x7_uint8": 1092,
    "greater_equal_1x5x6x7_1x5x6x7_int32": 2340,
    "less_1x5x6x7_1x5x6x7_int8": 1092,
    "less_1x5x6x7_1x5x6x7_int16": 1508,
    "less_1x5x6x7_1x5x6x7_uint8": 1092,
    "less_1x5x6x7_1x5x6x7_int32": 2340,
    "less_equal_1x5x6x7_1x5x6x7_int8": 1092,
    "less_equal_1x5x6x7_1x5x6x7_int16": 1508,
    "less_equal_1x5x6x7_1x5x6x7_uint8": 1092,
    "less_equal_1x5x6x7_1x5x6x7_int32": 2340,
    "logical_and_1x5x6x7_1x5x6x7": 1044,
    "logical_or_1x5x6x7_1x5x6x7": 1044,
    "logical_not": 756,
    "reduce_all_axis1": 596,
    "select_v2_int8": 1348,
    "select_v2_int16": 1972,
    "select_v2_int32": 3220,
    "gather_int8": 468,
    "reverse_v2_axis1_int8": 772,
    "reverse_v2_axis1_int16": 1188,
    "reverse_v2_axis1_int32": 2020,
    "cast_int8_int16": 980,
    "cast_int16_int8": 980,
    "cast_uint8_int8": 772,
    "cast_int32_int8": 1396,
    "cast_bool_int8": 772,
}
"""Networks of one operator on the processor: what the interpreter used there."""

MAP, HALF = (1, 4, 4, 8), (1, 2, 2, 8)
BLOCKS = (np.array((2, 2), np.int32), np.zeros((2, 2), np.int32))
POOL = {"padding": 1, "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
PLAIN: tuple[tuple[Any, ...], ...] = (
    ("EXP", (MAP, MAP), "float32", ("ExpOptions", {}), (), 1296),
    ("FLOOR_DIV", (MAP, MAP, MAP), "float32", ("FloorDivOptions", {}), (), 1856),
    ("LOG_SOFTMAX", ((1, 10), (1, 10)), "float32", ("LogSoftmaxOptions", {}), (), 368),
    ("L2_NORMALIZATION", (MAP, MAP), "float32", ("L2NormOptions", {}), (), 1328),
    ("L2_NORMALIZATION", (MAP, MAP), "int8", ("L2NormOptions", {}), (), 596),
    ("L2_POOL_2D", (MAP, HALF), "float32", ("Pool2DOptions", POOL), (), 992),
    ("DEPTH_TO_SPACE", (MAP, (1, 8, 8, 2)), "int8", ("DepthToSpaceOptions", {"block_size": 2}),
     (), 612),
    ("BATCH_TO_SPACE_ND", ((4, 2, 2, 8), MAP), "int8", ("BatchToSpaceNDOptions", {}), BLOCKS, 596),
    ("SPACE_TO_BATCH_ND", (MAP, (4, 2, 2, 8)), "int8", ("SpaceToBatchNDOptions", {}), BLOCKS, 612),
    ("ZEROS_LIKE", (MAP, MAP), "int8", ("ZerosLikeOptions", {}), (), 564),
    ("CUMSUM", (MAP, MAP), "int8", ("CumsumOptions", {}), (np.array((1,), np.int32),), 628),
    ("CUMSUM", (MAP, MAP), "float32", ("CumsumOptions", {}), (np.array((1,), np.int32),), 1312),
    ("ADD_N", (MAP, MAP, MAP), "int8", ("AddNOptions", {}), (), 820),
    ("ADD_N", (MAP, MAP, MAP), "float32", ("AddNOptions", {}), (), 1888),
)  # fmt: skip
"""An operator's tensors, options and constants, and what the interpreter used there."""


@pytest.mark.usefixtures("velas_code")
@pytest.mark.filterwarnings("ignore::mizzen.diagnostics.MizzenWarning")
@pytest.mark.parametrize(("name", "place"), TARGETS)
def test_an_arena_is_what_the_device_uses(
    name: str, place: int, model_file: Callable[[str], Path]
) -> None:
    artifact = mizzen.compile(model_file(f"{name}.tflite"), ACCELERATORS[place], prove="off")
    found = arena_of(read_network(artifact.data, name))
    assert (found.used_bytes, found.least_bytes) == ON_CORTEX_M33[name][place]
    assert found.exact


def test_kernels_ask_for_what_they_ask_for_there() -> None:
    rows = {case.name: case for case in cases()}
    found = {
        name: arena_of(read_network(rows[name].build(), name)).used_bytes for name in OF_KERNELS
    }
    assert found == OF_KERNELS


@pytest.mark.parametrize(("kind", "shapes", "dtype", "options", "constants", "used"), PLAIN)
def test_kernels_outside_the_conformance_networks(
    kind: str,
    shapes: tuple[tuple[int, ...], ...],
    dtype: str,
    options: tuple[str, dict[str, int]],
    constants: tuple[Any, ...],
    used: int,
) -> None:
    net = NetworkBuilder()
    scale = 0.05 if dtype == "int8" else None
    inputs = [
        net.tensor(f"x{place}", shape, dtype, scale)
        for place, shape in enumerate(shapes[:-1])
    ]  # fmt: skip
    rows = [net.constant(f"c{place}", np.array(row)) for place, row in enumerate(constants)]
    y = net.tensor("y", shapes[-1], dtype, scale)
    net.operator(kind, [*inputs, *rows], [y], options)
    found = arena_of(read_network(net.finish(inputs, [y]), "net"))
    assert (found.used_bytes, found.exact) == (used, True)


def test_what_lies_in_the_plan_and_behind_it_adds_up() -> None:
    case = next(row for row in cases() if row.operator == "SOFTMAX")
    found = arena_of(read_network(case.build(), case.name))
    assert sum(row.size_bytes for row in found.kept) == found.used_bytes - found.plan_bytes
    assert max(row.offset_bytes + row.size_bytes for row in found.planned) <= found.plan_bytes
    assert found.least_bytes >= found.used_bytes
    assert found.least_bytes % 16 == 0


def test_a_kernel_without_a_row_is_bounded() -> None:
    pytest.importorskip("tflite_micro", reason="tflite-micro is not installed")
    net = NetworkBuilder()
    x, y = net.tensor("x", (), np.float32), net.tensor("y", (1, 4, 4, 8), np.float32)
    shape = net.constant("shape", np.array((1, 4, 4, 8), np.int32))
    net.operator("FILL", [shape, x], [y])
    found = arena_of(read_network(net.finish([x], [y]), "net"))
    assert not found.exact
    assert found.used_bytes >= 512 + 16  # both tensors are there at once


def test_the_plan_puts_the_largest_first_and_fills_gaps() -> None:
    buffers = [Buffer(16, 0, 1), Buffer(64, 1, 2), Buffer(32, 2, 3), Buffer(16, 3, 3)]
    assert plan(buffers) == [64, 0, 64, 0]
    assert end_of(buffers, plan(buffers)) == 96


def test_the_plan_keeps_what_the_compiler_has_placed() -> None:
    buffers = [Buffer(32, 0, 2, 16), Buffer(16, 0, 2), Buffer(32, 0, 2), Buffer(48, 3, 3)]
    assert plan(buffers) == [16, 0, 48, 0]


def test_equal_buffers_go_in_the_planners_order() -> None:
    assert plan([Buffer(16, 0, 0), Buffer(16, 0, 0)]) == [16, 0]
