"""Kernels of TFLite's operators: bit for bit what TensorFlow Lite Micro computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mizzen
from mizzen.diagnostics import MizzenError
from mizzen.export import c_container

from .one_operator import Network, i32, network, same_bits, t
from .runtime_host import built, fuzz


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("host"), "gcc")


AXIS_1 = {"axis": 1}
CASES: dict[str, Callable[[], Network]] = {
    **{
        f"softmax of {scale} and {length}": lambda scale=scale, length=length: network(
            "SOFTMAX",
            [t((3, length), scale=scale)],
            [t((3, length), scale=1 / 256, zero=-128)],
            ("SoftmaxOptions", {"beta": 1.0}),
        )
        for scale, length in ((0.1, 10), (0.01, 300), (1.7, 5), (0.0004, 33))
    },
    **{
        f"quantize {one} to {other}": lambda one=one, other=other: network(
            "QUANTIZE", [t((2, 50), one)], [t((2, 50), other, 0.07, -5)], ("QuantizeOptions", {})
        )
        for one, other in (
            ("float32", "int8"),
            ("float32", "int16"),
            ("int8", "int8"),
            ("int16", "int8"),
            ("int16", "int16"),
            ("int8", "int16"),
        )
    },
    **{
        f"dequantize {one}": lambda one=one: network(
            "DEQUANTIZE", [t((2, 50), one)], [t((2, 50), "float32")], ("DequantizeOptions", {})
        )
        for one in ("int8", "int16")
    },
    **{
        f"{kind} {dtype}": lambda kind=kind, dtype=dtype, options=options: network(
            kind, [t((2, 5, 3), dtype), i32(1)], [t((2, 3), "int32")], (options, {"output_type": 2})
        )
        for kind, options in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions"))
        for dtype in ("int8", "float32")
    },
    "transpose": lambda: network(
        "TRANSPOSE", [t((2, 3, 4)), i32(2, 0, 1)], [t((4, 2, 3))], ("TransposeOptions", {})
    ),
    "concatenation": lambda: network(
        "CONCATENATION", [t((2, 3)), t((2, 4))], [t((2, 7))], ("ConcatenationOptions", AXIS_1)
    ),
    "slice": lambda: network(
        "SLICE", [t((3, 5)), i32(1, 2), i32(2, -1)], [t((2, 3))], ("SliceOptions", {})
    ),
    "strided slice": lambda: network(
        "STRIDED_SLICE",
        [t((4, 9)), i32(0, 7), i32(4, 0), i32(2, -3)],
        [t((2, 3))],
        ("StridedSliceOptions", {"begin_mask": 1}),
    ),
    "strided slice that shrinks": lambda: network(
        "STRIDED_SLICE",
        [t((4, 9), "int32"), i32(-1, 1), i32(0, 6), i32(1, 2)],
        [t((3,), "int32")],
        ("StridedSliceOptions", {"shrink_axis_mask": 1}),
    ),
    "pad": lambda: network(
        "PAD", [t((2, 3)), i32([1, 0], [2, 1])], [t((3, 6))], ("PadOptions", {})
    ),
    "split": lambda: network(
        "SPLIT", [i32(1), t((2, 6))], [t((2, 3)), t((2, 3))], ("SplitOptions", {"num_splits": 2})
    ),
    "pack": lambda: network(
        "PACK",
        [t((2, 3)), t((2, 3))],
        [t((2, 2, 3))],
        ("PackOptions", {**AXIS_1, "values_count": 2}),
    ),
    "unpack": lambda: network(
        "UNPACK", [t((2, 2, 3))], [t((2, 3)), t((2, 3))], ("UnpackOptions", {**AXIS_1, "num": 2})
    ),
    "cast": lambda: network(
        "CAST", [t((2, 3), "float32")], [t((2, 3), "int32")], ("CastOptions", {})
    ),
    **{
        f"{kind} of int32": lambda kind=kind, options=options: network(
            kind, [t((2, 3), "int32"), t((2, 3), "int32")], [t((2, 3), "int32")], (options, {})
        )
        for kind, options in (("MUL", "MulOptions"), ("ADD", "AddOptions"))
    },
    **{
        f"{kind} of float32": lambda kind=kind, options=options: network(
            kind,
            [t((2, 3), "float32"), t((3,), "float32")],
            [t((2, 3), "float32")],
            (options, {}),
        )
        for kind, options in (
            ("MUL", "MulOptions"),
            ("ADD", "AddOptions"),
            ("SUB", "SubOptions"),
            ("DIV", "DivOptions"),
            ("MAXIMUM", "MaximumMinimumOptions"),
        )
    },
    "minimum": lambda: network(
        "MINIMUM", [t((2, 3)), t((1, 3))], [t((2, 3))], ("MaximumMinimumOptions", {})
    ),
    "greater": lambda: network(
        "GREATER",
        [t((2, 3), "float32"), t((2, 3), "float32")],
        [t((2, 3), "bool")],
        ("GreaterOptions", {}),
    ),
    "select": lambda: network(
        "SELECT_V2", [t((2, 3), "bool"), t((2, 3)), t((2, 3))], [t((2, 3))], ("SelectV2Options", {})
    ),
    "gather": lambda: network(
        "GATHER", [t((2, 5, 3)), i32(4, 0, 4)], [t((2, 3, 3))], ("GatherOptions", AXIS_1)
    ),
    "reshape": lambda: network(
        "RESHAPE", [t((2, 6)), i32(3, 4)], [t((3, 4))], ("ReshapeOptions", {})
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_give_tflite_micros_bits(program: Path, name: str, tmp_path: Path) -> None:
    same_bits(program, CASES[name](), tmp_path)


def test_what_is_limited_is_refused(tmp_path: Path) -> None:
    inputs = [t((2, 3)), t((2, 3), scale=0.2)]
    data, _ = network("CONCATENATION", inputs, [t((4, 3))], ("ConcatenationOptions", {}))
    file = tmp_path / "network.tflite"
    file.write_bytes(data)
    with pytest.raises(MizzenError) as caught:
        c_container(mizzen.load(file))
    assert str(caught.value) == (
        "error[E465]: the C runtime takes tflite::CONCATENATION with limits: inputs and output "
        "must have one scale\n"
        '  at   network.tflite, operator 0 CONCATENATION -> "y0"\n'
        "  help export for a runtime that has it, or replace the operator in the model; "
        "`mizzen run` executes it on the host"
    )


def damaged(folder: Path, times: int) -> None:
    """Damage a container of each case so many times, under sanitizers."""
    program = built(folder, "clang")
    for seed, (name, case) in enumerate(CASES.items()):
        file = folder / "network.tflite"
        file.write_bytes(case()[0])
        counts = fuzz(program, c_container(mizzen.load(file)).data, times, seed)
        assert sum(counts) == times, name


def test_kernels_of_damaged_containers_stay_inside(tmp_path: Path) -> None:
    damaged(tmp_path, 40)


@pytest.mark.sweep
def test_kernels_of_many_damaged_containers_stay_inside(tmp_path: Path) -> None:
    damaged(tmp_path, 3000)
