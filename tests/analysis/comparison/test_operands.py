"""Wrong addresses in streams: `compare` finds each that makes an operation read something else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.comparison.constants import constants_beside
from mizzen.analysis.comparison.exactness import compare, failures_of
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.program import OPERANDS
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.package.tflite.builder import NetworkBuilder

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.tflite"
EACH = 11
"""Of the addresses of a stream one of so many is tried."""

BRICK_BYTES = 16


def moved(artifact: mizzen.Artifact) -> Iterator[mizzen.Artifact]:
    """Return artifacts that have one feature map a brick off each, and can be executed."""
    (step,) = (step for step in artifact.steps if isinstance(step, NpuStep))
    start = artifact.data.find(step.program.words.tobytes())
    addresses = [row for row in step.program.instructions if row.command.name.endswith("_BASE0")]
    for instruction in addresses[::EACH]:
        data = bytearray(artifact.data)
        data[start + 4 * instruction.offset_words + 4] ^= BRICK_BYTES
        try:
            found = artifact_of(bytes(data), artifact.name)
            _ = [row.simulator for row in found.steps if isinstance(row, NpuStep)]
        except MizzenError:
            continue
        yield found


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_wrong_addresses_are_found(accelerator: str) -> None:
    artifact = mizzen.compile(DIGITS, accelerator)
    images = np.random.default_rng(1).integers(-128, 128, (256, *artifact.inputs[0].shape), np.int8)
    right = artifact.run(images)
    tried = 0
    for broken in moved(artifact):
        try:
            changes = not np.array_equal(broken.run(images), right)
        except MizzenError:
            continue
        if changes:
            tried += 1
            assert not compare(DIGITS, artifact=broken).holds
    assert tried > 1


def test_who_reads_something_else_is_told() -> None:
    artifact = mizzen.compile(DIGITS, "ethos-u65-256")
    found = compare(DIGITS, artifact=next(moved(artifact)))
    first = next(failures_of(found))
    assert first.code == "E692"
    assert first.message == (
        "an operation must read what the same operations as in the model write, and 1 of its 1 "
        "feature maps have other bytes, the first at place 0"
    )
    assert first.origin is not None
    assert first.origin.kind == "CONV_2D"


@pytest.mark.parametrize("options", [{"memory_mode": "Sram_Only"}, {"optimise": "Size"}])
def test_another_memory_plan_has_the_same_operands(options: dict[str, str]) -> None:
    ours = mizzen.compile(DIGITS, "ethos-u55-128")
    theirs = mizzen.compile(DIGITS, "ethos-u55-128", **options)  # pyright: ignore[reportArgumentType]
    assert not constants_beside(ours, theirs).wrong


def test_rows_that_indices_choose_are_an_operand() -> None:
    net = NetworkBuilder()
    x, y = (net.tensor(name, (8, 16), "int8", 0.5) for name in "xy")
    chosen = net.tensor("chosen", (4,), "int32")
    z = net.tensor("z", (4, 16), "int8", 0.5)
    net.operator("RELU", [x], [y])
    net.operator("GATHER", [y, chosen], [z], ("GatherOptions", {"axis": 0}))
    artifact = mizzen.compile(net.finish([x, chosen], [z]), "ethos-u85-256")
    (step,) = (step for step in artifact.steps if isinstance(step, NpuStep))
    *_, gather = step.family.constants(step.simulator).values()
    assert len(gather[OPERANDS]) == 2, "the indices, and what they choose from"
