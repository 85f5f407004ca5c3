"""Networks that other tools changed compile exactly, whatever these left in the file."""

from __future__ import annotations

from typing import Any

import numpy as np

import mizzen
from mizzen.cpu.tflm import CpuKernels
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.memory_plan import ALLOCATION
from mizzen.flatbuffer.tflite import SCHEMA

from ..networks import MAP, Net, regions, report_of  # noqa: TID252 tests are no package with a name

ACCELERATOR = "ethos-u55-128"
TALLER = (1, 6, 4, 8)


def changed(data: bytes, **fields: dict[int, Any]) -> bytes:
    """Set fields of tensors, by their index."""
    record: Record = read(data, SCHEMA, "net")
    for name, values in fields.items():
        for index, value in values.items():
            record["subgraphs"][0]["tensors"][index][name] = value
    return write(record, SCHEMA)


def exact(data: bytes, artifact: mizzen.Artifact) -> bool:
    rng = np.random.default_rng(3)
    inputs = [rng.integers(-128, 128, (2, *row.shape)).astype(np.int8) for row in artifact.inputs]
    expected = CpuKernels(data).run(inputs, 2)
    found = artifact.run(*(row.reshape(2, *row.shape[2:]) for row in inputs))
    outputs = found if isinstance(found, tuple) else (found,)
    return all(np.array_equal(a.ravel(), b.ravel()) for a, b in zip(outputs, expected, strict=True))


def test_a_plan_of_the_arena_is_not_the_artifacts() -> None:
    net = Net()
    plan = np.array([1, 0, 4, -1, -1, -1, -1], np.int32)
    net.metadata(ALLOCATION, plan.tobytes())
    net.metadata("other", b"kept")
    data = net.finish([net.first, net.second], [net.twice(net.sum)])
    artifact = mizzen.compile(data, ACCELERATOR)
    assert exact(data, artifact)
    metadata = [row["name"] for row in read(artifact.data, SCHEMA, "net")["metadata"]]
    assert metadata.count(ALLOCATION) == 1
    assert "other" in metadata


def test_tensors_with_the_same_name_or_none_are_proved() -> None:
    net = Net()
    odd = net.map("odd")
    net.operator("ABS", [net.sum], [odd], ("AbsOptions", {}))
    middle = net.twice(odd)
    last = net.twice(middle)
    data = net.finish([net.first, net.second], [last, net.sum])
    names = {net.sum: "", odd: "", middle: "first", last: "first"}
    data = changed(data, name=names)
    artifact = mizzen.compile(data, ACCELERATOR, ignore_ops=["ABS"])
    report = report_of(artifact)
    assert not report.diagnostics
    assert not report.proof.unproved
    assert report.proof.equal == 2
    assert [row.name for row in artifact.inputs] == ["first", "second"]
    assert [row.name for row in artifact.outputs] == ["first", ""]
    assert exact(data, artifact)


def test_a_shape_counts_where_its_signature_says_another() -> None:
    net = Net()
    taller = net.map("taller", shape=TALLER)
    rows = net.constant("rows", np.array([[0, 0], [1, 1], [0, 0], [0, 0]], np.int32))
    net.operator("PAD", [net.sum, rows], [taller], ("PadOptions", {}))
    data = net.finish([net.first, net.second], [taller])
    stale = np.array([-1, *MAP[1:]], np.int32)
    data = changed(data, shape_signature={taller: stale, net.first: stale})
    artifact = mizzen.compile(data, ACCELERATOR)
    assert regions(artifact) == [("ADD", "NPU"), ("PAD", "NPU")]
    assert not report_of(artifact).diagnostics
    assert exact(data, artifact)
