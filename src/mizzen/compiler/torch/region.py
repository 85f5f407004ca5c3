"""The step of a compiled region of a PyTorch program."""

from __future__ import annotations

from mizzen.artifact.npu import is_npu, npu_step
from mizzen.artifact.region_step import RegionStep, edge_of
from mizzen.compiler.codegen import RegionCode


def step_of(region: RegionCode, tensors: dict[object, int]) -> RegionStep:
    """Make the step of a region; `tensors` has the index of each value of the whole graph."""
    model = region.model
    (operator,) = [row for row in model.main.operators if is_npu(row)]
    step = npu_step(model, operator, dict(region.origins))
    edge = edge_of(model, step)
    part = region.part
    inputs = dict(zip(model.main.inputs, part.inputs, strict=True))
    outputs = dict(zip(model.main.outputs, part.outputs, strict=True))
    shapes = {tensors[value]: value.shape for value in (*part.inputs, *part.outputs)}
    return RegionStep(
        step,
        [tensors[inputs[turn.outside]] for turn in edge.inputs],
        [tensors[outputs[turn.outside]] for turn in edge.outputs],
        shapes,
        edge,
    )
