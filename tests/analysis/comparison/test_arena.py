"""Tensors that several NPU operators fill in one arena are looked at where the CPU reads them."""

from __future__ import annotations

import numpy as np
import pytest

import mizzen
from mizzen.analysis.comparison.exactness import Inputs, compare, failures_of
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.flatbuffer import read, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.comparison import Outcome

PART_BYTES = 8
"""Of an element of the concatenation, one part."""


class Net(NetworkBuilder):
    """A network of maps `[1, 4, 4, depth]`, each with a name of its own."""

    def map(self, name: str, depth: int = 8) -> int:
        return self.tensor(name, (1, 4, 4, depth), np.int8, 0.1)

    def of(self, kind: str, name: str, depth: int, *inputs: int) -> int:
        y = self.map(name, depth)
        joins = kind == "CONCATENATION"
        self.operator(kind, inputs, [y], ("ConcatenationOptions", {"axis": 3}) if joins else None)
        return y


def filled_by_parts() -> bytes:
    """A concatenation, layer 3, that two NPU operators fill, and a sum that the first one gives."""
    net = Net()
    x, y, total = net.map("x"), net.map("y"), net.map("total")
    first = net.of("ABS", "first", 8, y)
    begun = net.of("CONCATENATION", "begun", 24, x, first, first)
    second = net.of("ABS", "second", 24, begun)
    whole = net.of("CONCATENATION", "whole", 40, first, second, first)
    net.operator("ADD", [y, x], [total], ("AddOptions", {}))
    return net.finish([x, y], [net.of("ABS", "end", 40, whole), total])


def given_by_the_first_alone(artifact: Artifact) -> Artifact:
    """Return an artifact that says of each tensor once who gives it, whoever writes the rest."""
    record = read(artifact.data, SCHEMA, artifact.name)
    given: set[int] = set()
    for operator in record["subgraphs"][0]["operators"]:
        fresh = [index for index in map(int, operator["outputs"]) if index not in given]
        operator["outputs"] = np.array(fresh, np.int32)
        given.update(fresh)
    return artifact_of(write(record, SCHEMA), artifact.name)


def moved(artifact: Artifact, place: int) -> Artifact:
    """Return an artifact of which an NPU operator writes its first part over another one."""
    step = [step for step in artifact.steps if isinstance(step, NpuStep)][place]
    tensors = read_network(artifact.data, artifact.name).main.tensors
    (index,) = (tensor.index for tensor in tensors if tensor.name == "whole")
    assert artifact.contents.arena is not None
    span = artifact.contents.arena.places[index].span
    address = next(
        each
        for each in step.program.instructions
        if each.command.name == "SET_OFM_BASE0"
        and span.offset_bytes <= each.values["address"] < span.end
    )
    data = bytearray(artifact.data)
    at = data.index(step.program.words.tobytes()) + 4 * address.offset_words + 4
    other = address.values["address"] ^ PART_BYTES
    data[at : at + 4] = other.to_bytes(4, "little")
    return artifact_of(bytes(data), artifact.name)


@pytest.fixture(name="parts")
def fixture_parts(velas_code: None) -> tuple[bytes, Artifact]:
    data = filled_by_parts()
    artifact = mizzen.compile(data, "ethos-u55-128", ignore_ops=["ABS"], prove="off")
    steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
    assert set(steps[0].outputs) & set(steps[1].outputs), "both fill the same tensor"
    return data, given_by_the_first_alone(artifact)


def test_a_tensor_is_looked_at_where_it_is_read(parts: tuple[bytes, Artifact]) -> None:
    data, artifact = parts
    found = compare(data, artifact=artifact, inputs=Inputs(count=4), prove="off")
    assert [row.code for row in failures_of(found)] == []
    assert [row.outcome for row in found.layers if row.name == "whole"] == [Outcome.EQUAL]


@pytest.mark.parametrize("place", [0, 1])
def test_a_part_that_is_wrong_is_found(parts: tuple[bytes, Artifact], place: int) -> None:
    """Whoever of the two writes it where another part belongs."""
    data, artifact = parts
    broken = moved(artifact, place)
    found = compare(data, artifact=broken, inputs=Inputs(count=4), prove="off")
    first = next(failures_of(found))
    assert first.code == "E483"
    assert first.origin is not None
    assert (first.origin.operator, first.origin.name) == (3, "whole")
