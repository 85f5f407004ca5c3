"""Texts of sequences and schedules: small networks, in each form that the generator makes of them.

A case has a graph as text, and below it what becomes of it. A line that begins with ``== `` says
from which step the text below it comes, and for what: each step takes what the one before gave.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.compiler.ethos_u.search.candidates import arranged
from mizzen.diagnostics import Origin
from mizzen.graph import parse
from mizzen.targets.ethos_u.generator.cascade import Run, cascaded
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Blocking,
    Box,
    Bytes,
    Chain,
    ChannelScales,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Issue,
    Kernel,
    Map,
    MatrixProduct,
    OperandScale,
    Order,
    Place,
    Pooling,
    Resize,
    Role,
    Scalar,
    Scale,
    Schedule,
    Sequence,
    Steps,
    Table,
    Tensor,
    Tiles,
    WrittenWeights,
)
from mizzen.targets.ethos_u.generator.schedule import Limits, schedule
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ClipRange,
    ElementwiseMode,
    IfmScaleMode,
    Layout,
    PoolingMode,
    ResizeModeU85,
    ReverseU85,
    RoundMode,
    RoundModeOfmU85,
    TransposeU85,
    UpscaleMode,
)
from mizzen.targets.ethos_u.machine.system_config import resolve

from .sequences import INT8, WHOLE_RANGE

CASES = sorted((Path(__file__).parent / "forms").glob("*.case"))
STEP = re.compile(r"^== (.*)\n", re.MULTILINE)


def made(step: str, graph: str, before: Sequence | None) -> tuple[Sequence, str]:
    """Do a step: return the sequence that the next one begins with, and the step's text."""
    match step.split():
        case ["lowered"]:
            lowered = lower(parse(graph))
            reasons = [refusal.reason for refusal in lowered.refusals]
            assert lowered.sequence is not None, reasons
            return lowered.sequence, str(lowered.sequence)
        case ["arranged", "for", accelerator]:
            assert before is not None
            after = arranged(before, resolve(accelerator))[0]
            return after, str(after)
        case ["operations", first, "to", last, "in", stripes, "stripes"]:
            assert before is not None
            after = cascaded(before, Run(int(first), int(last), int(stripes)))
            assert after is not None
            return after, str(after)
        case ["scheduled", "for", accelerator, "within", limit, "bytes"]:
            assert before is not None
            limits = Limits(scratch_bytes=int(limit))
            return before, str(schedule(before, resolve(accelerator), limits))
        case _:
            raise AssertionError(f"no step {step}")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_forms_of_a_network(path: Path, update_golden: bool) -> None:
    graph, *sections = STEP.split(path.read_text())
    sequence, parts = None, [graph]
    for step in sections[::2]:
        sequence, text = made(step, graph, sequence)
        parts.append(f"== {step}\n{text}\n\n")
    text = "".join(parts).rstrip() + "\n"
    if update_golden:
        path.write_text(text)
    assert path.read_text() == text


def tensor(name: str, role: Role = Role.SCRATCH) -> Tensor:
    return Tensor(name, (4, 4, 16), INT8, role)


def lines_of(tensors: list[Tensor], ifm: Map, ofm: Map, *more: Copy) -> list[str]:
    operation = Elementwise(Origin(), ElementwiseMode.ABS, ifm, None, ofm, WHOLE_RANGE)
    given = Role.INPUT, Role.STATE
    inputs = tuple(index for index, each in enumerate(tensors) if each.role in given)
    return str(Sequence(tuple(tensors), (operation, *more), inputs, (ofm.tensor,))).splitlines()


def test_boxes_and_bytes() -> None:
    """Parts have rows, columns, channels, as Python's slices do; bytes an offset and a type."""
    steps = Map(Box(0, (2, 2, 16), (1, 0, 0), (2, 1)), INT8, 3)
    view = Bytes(
        1, (2, 2, 16), 64, (64, 16, 1), Layout.NHCWB16, Tiles(1, 1, 2, (0, 128, 0))
    )  # fmt: skip
    copy = Copy(Origin(operator=3), 0, 16, 1, 32, 8)
    inner = lines_of([tensor("x", Role.INPUT), tensor("y")], steps, Map(view, INT8), copy)
    assert inner == [
        "sequence(%x: tensor<4x4x16xi8>) {",
        "  %y = TENSOR : tensor<4x4x16xi8>",
        "  %y@64<2x2x16xi8, strides_bytes [64, 16, 1], NHCWB16, tiles [1, 1, 2] at [0, 128, 0]> = "
        "ABS(%x[1:4:2, 0:2, :] zp 3) : tensor<2x2x16xi8>",
        "  %y@32 = COPY(%x@16) {length_bytes = 8} from {operator = 3}",
        "  return %y",
        "}",
    ]


def test_names() -> None:
    """Names that are none, are there twice, or need quotes; a state says that it is one."""
    tensors = [
        tensor("a b", Role.STATE),
        tensor("", Role.INPUT),
        tensor("a b"),
        tensor("a b.1"),
        tensor(""),
    ]
    lines = lines_of(tensors, Map(Box(2, (4, 4, 16)), INT8), Map(Box(4, (4, 4, 16)), INT8))
    assert lines[0] == 'sequence(%"a b": tensor<4x4x16xi8> state, %0: tensor<4x4x16xi8>) {'
    assert lines[2] == '  %1 = ABS(%"a b.1") : tensor<4x4x16xi8>'


def test_operands_of_another_type_and_numbers() -> None:
    uint8 = np.dtype(np.uint8)
    tensors = [tensor("x", Role.INPUT), tensor("y")]
    operation = Elementwise(
        Origin(), ElementwiseMode.SUB, Map(Box(0, (4, 4, 16)), uint8, 128),
        Scalar(5, uint8, 2), Map(Box(1, (4, 4, 16)), INT8), WHOLE_RANGE, reversed=True,
    )  # fmt: skip
    text = str(Sequence(tuple(tensors), (operation,), (0,), (1,)))
    assert "SUB(scalar<u8 5, zp 2>, %x<u8> zp 128) {ifm2 = first} : tensor<4x4x16xi8>" in text


def convolution() -> Convolution:
    return Convolution(
        Origin(operator=1), Map(Box(0, (4, 4, 16)), INT8), Map(Box(1, (4, 4, 16)), INT8), Kernel(),
        np.zeros((16, 1, 1, 16), np.int16),
        ChannelScales(np.zeros(16, np.int64), np.ones(16, np.int64), np.zeros(16, np.int64)),
        WHOLE_RANGE,
    )  # fmt: skip


POOL = Pooling(
    Origin(), PoolingMode.MAX, Map(Box(0, (4, 4, 16)), INT8), Map(Box(1, (4, 4, 16)), INT8),
    Kernel(), Scale(1, 0), WHOLE_RANGE,
)  # fmt: skip
SUM = Elementwise(
    Origin(), ElementwiseMode.ADD, Map(Box(0, (4, 4, 16)), INT8), Map(Box(0, (4, 4, 16)), INT8),
    Map(Box(1, (4, 4, 16)), INT8), WHOLE_RANGE,
)  # fmt: skip
WINDOWED: dict[str, Any] = {
    "kernel": Kernel(pad_right=1),
    "upscale": UpscaleMode.ZEROS,
    "rounding": RoundMode.TRUNCATE,
    "accumulators": AccFormat.I40,
    "activation": Activation(-128, 126),
}
CHANGES: list[tuple[Computation, dict[str, Any]]] = [
    (
        convolution(),
        {
            **WINDOWED,
            "weights": np.arange(256, dtype=np.int16).reshape(16, 1, 1, 16),
            "scales": ChannelScales(
                np.zeros(16, np.int64), np.ones(16, np.int64), np.ones(16, np.int64)
            ),
            "depthwise": True,
            "part_kernel": False,
            "written": WrittenWeights(0, 16, ((0, 64),)),
            "origin": Origin(operator=2),
        },
    ),
    (POOL, {**WINDOWED, "mode": PoolingMode.AVERAGE, "scale": Scale(1, 1)}),
    (
        SUM,
        {
            "mode": ElementwiseMode.SUB,
            "ifm2": None,
            "reversed": True,
            "scale": Scale(1, 0),
            "scale_a": Scale(1, 0),
            "scale_b": Scale(1, 0),
            "scale_mode": IfmScaleMode.OPA_32,
            "rounding": RoundMode.NATURAL,
            "ifm_rounding": RoundMode.NATURAL,
            "activation": Activation(-128, 127, Table(bytes(256))),
            "ofm": Map(Box(1, (4, 4, 16)), INT8, 1),
        },
    ),
    (
        MatrixProduct(
            Origin(),
            Map(Box(0, (4, 4, 16)), INT8),
            Map(Box(0, (1, 16, 16)), INT8),
            Map(Box(1, (4, 4, 16)), INT8),
            Scale(1, 0),
            WHOLE_RANGE,
        ),
        {
            "ifm2": Map(Box(0, (1, 16, 16)), INT8, 1),
            "scale": Scale(1, 1),
            "rounding": RoundModeOfmU85.SYMMETRIC,
            "accumulators": AccFormat.I40,
            "order": Order(TransposeU85.WHC),
        },
    ),
    (
        Resize(
            Origin(),
            ResizeModeU85.BILINEAR,
            Map(Box(0, (4, 4, 16)), INT8),
            Map(Box(1, (4, 4, 16)), INT8),
            Steps(2, 1, 0),
            Steps(2, 1, 0),
            Scale(1, 0),
            WHOLE_RANGE,
        ),
        {
            "mode": ResizeModeU85.NEAREST,
            "rows": Steps(2, 2, 0),
            "columns": Steps(2, 1, 1),
            "scale": Scale(1, 1),
            "rounding": RoundModeOfmU85.SYMMETRIC,
            "order": Order(TransposeU85.HCW),
        },
    ),
    (
        SUM,
        {
            "operand_scales": (OperandScale(3, 1, RoundMode.NATURAL, 20), None),
            "order": Order(reverse=ReverseU85.W),
        },
    ),
    (
        POOL,
        {"activation": Activation(-128, 127, function="TANH"), "order": Order(TransposeU85.HCW)},
    ),
    (POOL, {"activation": Activation(-128, 127, clip_range=ClipRange.FORCE_INT8)}),
]


@pytest.mark.parametrize(
    ("operation", "name", "value"),
    [(operation, *change) for operation, changes in CHANGES for change in changes.items()],
)
def test_whatever_differs_reads_otherwise(operation: Computation, name: str, value: object) -> None:
    """Nothing that an operation is made of is left out of its line."""
    tensors = tensor("x", Role.INPUT), tensor("y")
    one, other = (
        str(Sequence(tensors, (each,), (0,), (1,)))
        for each in (operation, replace(operation, **{name: value}))
    )
    assert one != other


def test_links_of_a_chain() -> None:
    """A line for each; what is known of all of it stands at the end."""
    tensors = tensor("x", Role.INPUT), tensor(""), tensor("y")
    between = Map(Box(1, (4, 4, 16)), INT8)
    links = replace(POOL, ofm=between), replace(SUM, ifm2=between, ofm=tensors_map(2))
    sequence = Sequence(tensors, (Chain(links),), (0,), (2,))
    assert str(sequence).splitlines()[1:-2] == [
        "  chain {",
        "    %0 = POOL_MAX(%x) {kernel = [1, 1], scale = [1, 0]} : tensor<4x4x16xi8>",
        "    %y = ADD(%x, %0) : tensor<4x4x16xi8>",
        "  }",
    ]
    places = Place(1, 0), None, Place(1, 256)
    made = Schedule(
        sequence, (Layout.NHWC,) * 3, places, (), (), (Issue(0, Blocking((4, 4, 16))),), {1: 512}
    )
    assert str(made).splitlines()[4:-2] == [
        "    %y = ADD(%x, %0) : tensor<4x4x16xi8, NHWC> at SCRATCH+256",
        "  } block 4x4x16",
    ]


def tensors_map(tensor: int) -> Map:
    return Map(Box(tensor, (4, 4, 16)), INT8)
