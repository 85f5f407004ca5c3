"""TOSA files read as graphs: those of Arm's own converter, and damaged ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Record
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer import write as write_file
from mizzen.flatbuffer.tosa import NUMBERS, SCHEMA
from mizzen.frontends.tosa import read
from mizzen.graph import DType, Graph, RoundingMode, TensorType
from mizzen.ops import Builder
from mizzen.package.tosa import write


def small() -> Graph:
    """A convolution with its rescale, whose file has all kinds of parts."""
    graph = Graph()
    b = Builder(graph)
    image = graph.add_input(TensorType((1, 4, 4, 2), DType.INT8), "image")
    zero = b.constant([0], DType.INT8)
    weights = b.constant(np.arange(3 * 3 * 3 * 2).reshape(3, 3, 3, 2), DType.INT8)
    bias = b.constant([1, 2, 3], DType.INT32)
    sums = b("CONV2D", image, weights, bias, zero, zero, pad=(1, 1, 1, 1), stride=(1, 1))
    multiplier, shift = b.constant([1 << 30], DType.INT32), b.constant([36], DType.INT8)
    scaled = b(
        "RESCALE",
        *(sums, multiplier, shift, b.constant([0], DType.INT32), zero),
        scale32=True,
        rounding_mode=RoundingMode.DOUBLE_ROUND,
        per_channel=False,
    )
    flat = b("RESHAPE", scaled, b.shape([1, 48]))
    flat.name = "flat"
    graph.set_outputs([flat])
    return graph


FILE = write(small())


def test_origins_point_into_the_file() -> None:
    graph = read(FILE, "net.tosa")
    *_, last = graph.sorted()
    assert str(last.origin) == 'net.tosa, operator 9 RESHAPE -> "flat"'
    assert [value.name for value in (*graph.inputs, *graph.outputs)] == ["image", "flat"]


def damage(change: Callable[[Record], None]) -> bytes:
    record = read_file(FILE, SCHEMA, "x")
    change(record)
    return write_file(record, SCHEMA)


def block(record: Record) -> Any:
    return record["regions"][0]["blocks"][0]


def find(record: Record, kind: str) -> Any:
    return next(row for row in block(record)["operators"] if row["op"] == NUMBERS[kind])


def tensor(record: Record, name: str) -> Any:
    return next(row for row in block(record)["tensors"] if row["name"] == name)


CHANGES: dict[str, tuple[str, str, Callable[[Record], None]]] = {
    "version": (
        "E152",
        "net.tosa must be of TOSA 1, and is of 0.80",
        lambda record: record["version"].update(_major=0, _minor=80),
    ),
    "no region": (
        "E157",
        "net.tosa must have a region, and has none",
        lambda record: record.update(regions=[]),
    ),
    "two blocks": (
        "E157",
        "region main must have one block, and has 2",
        lambda record: record["regions"][0].update(blocks=[block(record), block(record)]),
    ),
    "later operator": (
        "E154",
        "an operator must be one of TOSA 1.0, numbered 1 to 75, and is number 76",
        lambda record: find(record, "CONV2D").update(op=76),
    ),
    "order": (
        "E153",
        "what is taken must be an input or computed before, and 'value_6' is neither",
        lambda record: block(record)["operators"].reverse(),
    ),
    "undeclared": (
        "E153",
        "every tensor must be declared, and 'nothing' is not",
        lambda record: block(record).update(inputs=["nothing"]),
    ),
    "given twice": (
        "E153",
        "a tensor must be given once, and 'image' is given again",
        lambda record: find(record, "RESHAPE").update(outputs=["image"]),
    ),
    "declared twice": (
        "E153",
        "a tensor's name must be its own, and two are called 'image'",
        lambda record: block(record)["tensors"].append(tensor(record, "image")),
    ),
    "type": (
        "E154",
        "the elements of 'image' must be of a type of TOSA 1.0, and are of FP8E4M3",
        lambda record: tensor(record, "image").update(type=11),
    ),
    "unknown type": (
        "E154",
        "the elements of 'image' must be of a type of TOSA 1.0, and are of 99",
        lambda record: tensor(record, "image").update(type=99),
    ),
    "unranked": (
        "E156",
        "a tensor must have a known shape of up to 8 dimensions and 1 GiB, and 'image' has no rank",
        lambda record: tensor(record, "image").update(is_unranked=True),
    ),
    "dynamic": (
        "E156",
        "a tensor must have a known shape of up to 8 dimensions and 1 GiB, and 'image' has shape "
        "(-1, 4)",
        lambda record: tensor(record, "image").update(shape=[-1, 4]),
    ),
    "enormous": (
        "E156",
        "a tensor must have a known shape of up to 8 dimensions and 1 GiB, and 'image' has shape "
        "(65536, 65536)",
        lambda record: tensor(record, "image").update(shape=[1 << 16, 1 << 16]),
    ),
    "rounding": (
        "E154",
        "rounding_mode of RESCALE must be one of SINGLE_ROUND, INEXACT_ROUND, DOUBLE_ROUND, and is "
        "UNKNOWN",
        lambda record: find(record, "RESCALE")["attribute"].fields.update(rounding_mode=0),
    ),
    "no stride": (
        "E157",
        "CONV2D must have stride, and has none",
        lambda record: find(record, "CONV2D")["attribute"].fields.update(stride=None),
    ),
    "no attributes": (
        "E157",
        "CONV2D must have its attributes, and has none",
        lambda record: find(record, "CONV2D").update(attribute=None),
    ),
    "other attributes": (
        "E157",
        "CONV2D must have Conv2dAttribute, not ReshapeAttribute",
        lambda record: find(record, "CONV2D").update(
            attribute=find(record, "RESHAPE")["attribute"]
        ),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_does_not_hold_is_told(change: str) -> None:
    code, message, edit = CHANGES[change]
    with pytest.raises(MizzenError) as caught:
        read(damage(edit), "net.tosa")
    diagnostic = caught.value.diagnostic
    assert (diagnostic.code, diagnostic.message) == (code, message)


def test_contents_must_suffice() -> None:
    def shorten(record: Record) -> None:
        for row in block(record)["tensors"]:
            if row["data"] is not None and len(row["data"]) == 54:
                row["data"] = row["data"][:53]

    with pytest.raises(MizzenError) as caught:
        read(damage(shorten), "net.tosa")
    assert caught.value.diagnostic.message == (
        "the contents of 'value_0' must have 54 bytes for its type and shape, and have 53"
    )


def test_another_format_is_told() -> None:
    with pytest.raises(MizzenError) as caught:
        read(b"\x08\0\0\0TFL3", "net.tosa")
    assert str(caught.value) == (
        "error[E151]: net.tosa must be a TOSA file: bytes 4..8 must be 'TOSA', not 'TFL3'\n"
        "  help give a .tosa flatbuffer; other formats go by other endings"
    )


@settings(max_examples=300)
@given(st.integers(8, len(FILE) - 1), st.integers(0, 255), st.integers(0, len(FILE)))
def test_damaged_files_are_refused_or_read(at: int, byte: int, end: int) -> None:
    data = bytearray(FILE)
    data[at] = byte
    for damaged in (bytes(data), bytes(data[: max(end, 8)])):
        try:
            read(damaged, "net.tosa")
        except MizzenError:
            continue


BODIES = """
func.func @main(%x: tensor<2x3xf32>, %c: tensor<i1>) -> tensor<2x3xf32> {
  %0 = "tosa.cond_if"(%c, %x) ({
  ^bb0(%a: tensor<2x3xf32>):
    %1 = tosa.add %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    tosa.yield %1 : tensor<2x3xf32>
  }, {
  ^bb0(%a: tensor<2x3xf32>):
    %1 = tosa.clamp %a {min_val = -0.5 : f32, max_val = 0.25 : f32}
      : (tensor<2x3xf32>) -> tensor<2x3xf32>
    tosa.yield %1 : tensor<2x3xf32>
  }) : (tensor<i1>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""
VARIABLES = """
module {
  tosa.variable @state = dense<[1.0, 2.0]> : tensor<2xf32>
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = tosa.variable_read @state : tensor<2xf32>
    %1 = tosa.add %0, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    tosa.variable_write @state, %1 : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
"""
SHAPES = """
func.func @main(%x: tensor<1x2x3xi8>) -> tensor<6x1xi8> {
  %p = tosa.const_shape {values = dense<[0, 0, 1, 0, 0, 2]> : tensor<6xindex>}
    : () -> !tosa.shape<6>
  %v = "tosa.const"() {values = dense<7> : tensor<1xi8>} : () -> tensor<1xi8>
  %0 = tosa.pad %x, %p, %v
    : (tensor<1x2x3xi8>, !tosa.shape<6>, tensor<1xi8>) -> tensor<1x3x5xi8>
  %1 = tosa.transpose %0 {perms = array<i32: 2, 1, 0>} : (tensor<1x3x5xi8>) -> tensor<5x3x1xi8>
  %a = tosa.const_shape {values = dense<[1, 1, 0]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %b = tosa.const_shape {values = dense<[3, 2, 1]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %2 = tosa.slice %1, %a, %b
    : (tensor<5x3x1xi8>, !tosa.shape<3>, !tosa.shape<3>) -> tensor<3x2x1xi8>
  %s = tosa.const_shape {values = dense<[6, 1]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %3 = tosa.reshape %2, %s : (tensor<3x2x1xi8>, !tosa.shape<2>) -> tensor<6x1xi8>
  return %3 : tensor<6x1xi8>
}
"""
PROGRAMS = {
    "bodies": BODIES,
    "variables": VARIABLES,
    "shapes": SHAPES,
}
RUN = """
import sys
import numpy as np
import tosa_reference_model

inputs = [np.load(name) for name in sys.argv[2:]]
results, _ = tosa_reference_model.run(open(sys.argv[1], "rb").read(), inputs)
np.savez(sys.argv[1] + ".npz", *results)
"""


def purelib(python: str) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(ran.stdout.strip())


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("MIZZEN_TOSA_PYTHON")
    if not found:
        pytest.skip("no TOSA tools: set MIZZEN_TOSA_PYTHON to a Python that has tosa-tools")
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_arms_tools_agree_on_what_was_read(program: str, python: str, tmp_path: Path) -> None:
    """A file that Arm's converter wrote and its copy by way of a graph compute the same."""
    (tmp_path / "net.mlir").write_text(PROGRAMS[program])
    converter = purelib(python) / "bin" / "tosa-opt"
    subprocess.run(
        [converter, "--tosa-serialize=tosa-flatbuffer-filename=theirs.tosa", "net.mlir"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    data = (tmp_path / "theirs.tosa").read_bytes()
    graph = read(data, "theirs.tosa")
    (tmp_path / "ours.tosa").write_bytes(write(graph))
    names = [save(tmp_path, index, value.type) for index, value in enumerate(graph.inputs)]
    theirs, ours = (run(python, tmp_path / f"{who}.tosa", names) for who in ("theirs", "ours"))
    assert len(theirs) == len(graph.outputs)
    for one, other in zip(theirs, ours, strict=True):
        assert one.any()
        np.testing.assert_array_equal(one, other)


def save(folder: Path, index: int, type: TensorType) -> str:
    random = np.random.default_rng(index)
    name = folder / f"input{index}.npy"
    np.save(name, random.integers(-100, 100, type.shape).astype(type.dtype.numpy))
    return str(name)


def run(python: str, file: Path, inputs: list[str]) -> list[Any]:
    subprocess.run([python, "-c", RUN, file, *inputs], capture_output=True, check=True)
    with np.load(f"{file}.npz") as results:
        return [results[name] for name in results.files]
