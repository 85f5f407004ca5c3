"""Bytes on the buses against a count of every block by itself, and of what commands say."""

from __future__ import annotations

from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.cost import cost_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.report.cost import Purpose
from mizzen.targets.ethos_u.judge.hazards.blocks import Input, Sliding
from mizzen.targets.ethos_u.judge.hazards.maps import BRICK, Box, Map
from mizzen.targets.ethos_u.judge.timing import KernelWork
from mizzen.targets.ethos_u.judge.timing.reads import reads_of, write_of
from mizzen.targets.ethos_u.judge.timing.work import work_of
from mizzen.targets.ethos_u.machine.program import accelerator_of

ACCELERATORS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256", "ethos-u85-1024")


@pytest.fixture(scope="module", params=ACCELERATORS)
def artifact(request: pytest.FixtureRequest, models: Path) -> Artifact:
    return mizzen.compile(models / "kws_ref_model.tflite", request.param)


def kernels(artifact: Artifact) -> list[KernelWork]:
    steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
    return [
        row
        for step in steps
        for row in work_of(step.program, accelerator_of(step.program.hardware))
        if isinstance(row, KernelWork)
    ]


def bytes_of_box(fm: Map, box: Box, beat_bytes: int) -> int:
    """Count a box row by row: bricks as a whole, else beats of what lies side by side."""
    (top, left, low), (bottom, right, high) = box.start, box.stop
    rows, columns = bottom - top, right - left
    if fm.bricks:
        bricks = len({channel // BRICK for channel in range(low, high)})
        return rows * columns * bricks * BRICK * fm.element_bytes
    runs = [columns * (high - low) * fm.element_bytes] * rows
    if fm.stride_x != (high - low) * fm.element_bytes:
        runs = [(high - low) * fm.element_bytes] * (rows * columns)
    return sum(-(-run // beat_bytes) * beat_bytes for run in runs)


def boxes_fetched(work: KernelWork, item: Input) -> list[Box]:
    """Fetch job by job into a memory that keeps the last ones; every other block goes back."""
    blocks, fetched, kept, forward = work.blocks, [], list[Box](), True
    for index in range(blocks.total):
        box = item.window.of(blocks.at(index), item.map.shape)
        if index % blocks.counts[2] == 0:
            kept, forward = [], True
        depth, slab = item.map.shape[2], item.slab or item.map.shape[2]
        lows = list(range(0, depth, slab))
        for low in lows if forward else reversed(lows):
            job = Box((*box.start[:2], low), (*box.stop[:2], min(low + slab, depth)))
            if job in kept:
                kept.remove(job)
            else:
                fetched.append(job)
            kept = [*kept, job][-work.kept :]
        forward = not forward
    return fetched


@pytest.mark.parametrize("beat_bytes", [8, 16])
def test_reads_are_those_of_every_block(artifact: Artifact, beat_bytes: int) -> None:
    for work in kernels(artifact):
        blocks = [work.blocks.at(index) for index in range(work.blocks.total)]
        if len(work.subkernels) > 1:
            continue
        for item, moved in zip(work.blocks.inputs, reads_of(work, beat_bytes), strict=True):
            if work.kept and isinstance(item.window, Sliding):
                boxes = boxes_fetched(work, item)
            else:
                boxes = [item.window.of(block, item.map.shape) for block in blocks]
            expected = sum(bytes_of_box(item.map, box, beat_bytes) for box in boxes)
            assert moved.bytes_ == expected, (work.origin, item.map)


def test_writes_are_those_of_every_block(artifact: Artifact) -> None:
    for work in kernels(artifact):
        moved, result = write_of(work, 8), work.blocks.result
        if moved is None or result is None:
            continue
        boxes = [work.blocks.turned(work.blocks.at(index)) for index in range(work.blocks.total)]
        assert moved.bytes_ == sum(bytes_of_box(result.map, box, 8) for box in boxes)
        written = result.map.bytes.intervals
        assert moved.bytes_ >= int((written.ends - written.starts).sum())


def test_every_byte_of_commands_and_weights_is_read(artifact: Artifact) -> None:
    """Commands once, up to the last operation; weights at least as many as the streams hold."""
    report = cost_report(artifact)
    read = dict.fromkeys(Purpose, 0)
    for row in report.traffic:
        read[row.purpose] += row.read_bytes
    (step,) = (step for step in artifact.steps if isinstance(step, NpuStep))
    last = max(row.origin.command or 0 for row in kernels(artifact))
    assert read[Purpose.COMMANDS] == 4 * (last + 1)
    assert step.program.words.nbytes - read[Purpose.COMMANDS] <= 64
    held = sum(row.bytes_ for work in kernels(artifact) for row in work.streams)
    assert read[Purpose.WEIGHTS] + read[Purpose.SCALES] >= held
