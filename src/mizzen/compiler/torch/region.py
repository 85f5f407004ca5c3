"""The step of a compiled region of a PyTorch program."""

from __future__ import annotations

from mizzen.artifact.region_step import Edge, EdgeMove, RegionStep
from mizzen.artifact.steps import is_npu, npu_step
from mizzen.compiler.codegen import OperatorCode, RegionCode


def step_of(region: RegionCode, tensors: dict[object, int]) -> RegionStep:
    """Make the step of a region; `tensors` has the index of each value of the whole graph."""
    model, part = region.model, region.part
    (operator,) = [row for row in model.main.operators if is_npu(row)]
    program = region.program if isinstance(region, OperatorCode) else None
    step = npu_step(model, operator, dict(region.origins), program)
    if isinstance(region, OperatorCode):
        given, computed, edge = region.given, region.computed, region.edge
    else:
        # The network is the operator: what it takes and gives are its inputs and outputs.
        given = [model.main.inputs.index(index) for index in step.inputs]
        computed = [model.main.outputs.index(index) for index in step.outputs]
        edge = Edge((EdgeMove(),) * len(given), (EdgeMove(),) * len(computed))
    shapes = {tensors[value]: value.shape for value in (*part.inputs, *part.outputs)}
    return RegionStep(
        step,
        [tensors[part.inputs[index]] for index in given],
        [tensors[part.outputs[index]] for index in computed],
        shapes,
        edge,
    )
