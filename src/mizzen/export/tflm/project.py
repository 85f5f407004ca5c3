"""An artifact as a project of TensorFlow Lite Micro for a board."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mizzen.artifact.ethos_u import npu_operator
from mizzen.artifact.forms import own_ending
from mizzen.artifact.steps import NpuStep, is_npu, read_network
from mizzen.artifact.written import conversions
from mizzen.boards import Role
from mizzen.diagnostics import fail
from mizzen.export.checkouts import DRIVER, TFLM
from mizzen.export.drop_in import joined
from mizzen.export.project import Project, Request, example_of, require_memory, surroundings
from mizzen.export.tflm.arena import arena_of, variables_of
from mizzen.frontends.tflite.subgraphs import reached_from, seen_from
from mizzen.package.tflm import OPERATORS, TflmModel, TflmOperator, project_files
from mizzen.targets.ethos_u.machine.base_pointers import has_tensor_regions
from mizzen.targets.ethos_u.machine.program import Program

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.frontends.tflite import Model


def tflm_project(artifact: Artifact, request: Request) -> Project:
    """Return the project of an artifact.

    E471 for an operator that TensorFlow Lite Micro has not, E472 for what is no TFLite network,
    E415 for an NPU or memory mode that the board does not have, E468 if a memory of the board is
    too small, E701 to E707 for what its kernels refuse, E711 to E713 for inputs that do not fit.
    """
    _require_network(artifact)
    mode = request.mode_for(artifact)
    around = surroundings(artifact, request, mode)
    model = model_of(artifact)
    needed = {
        Role.MODEL: len(model.network),
        Role.ARENA: model.arena_bytes,
        Role.FAST: model.fast_bytes,
    }
    require_memory(request.board, mode, needed)
    example = example_of(artifact, request, mode, needed)
    files = project_files(model, around, example)
    kinds = [operator.kind for operator in model.operators]
    asked = (TFLM, DRIVER) if model.on_npu else (TFLM,)
    missing = [checkout.variable for checkout in asked if checkout.variable not in around.checkouts]
    made = Project(files, kinds, needed, mode, example.inferences, missing, model.network)
    return joined(made, request)


def _require_network(artifact: Artifact) -> None:
    ending = own_ending(artifact.data)
    if ending != ".tflite":
        reason = f"is a {ending} file"
    elif conversions(artifact):
        reason = "has numbers around it that PyTorch converts"
    elif any(map(_has_tensor_regions, artifact.steps)):
        reason = "has regions of their own for inputs and outputs, which the arena does not hold"
    else:
        return
    raise fail(
        "E472",
        f"TensorFlow Lite Micro executes TFLite networks, and {artifact.name} {reason}",
        help="choose --to c or --to executorch; what was compiled of a .tflite goes as it is",
    )


def _has_tensor_regions(step: object) -> bool:
    if not isinstance(step, NpuStep) or not isinstance(step.program, Program):
        return False
    return has_tensor_regions(step.program)


def model_of(artifact: Artifact) -> TflmModel:
    """Return a network as an interpreter needs it. E471 for an operator that there is not."""
    model = read_network(artifact.data, artifact.name)
    npu = [
        npu_operator(seen_from(model, reached_from(model, subgraph.index)), operator)
        for subgraph in model.subgraphs
        for operator in subgraph.operators
        if is_npu(operator)
    ]
    return TflmModel(
        artifact.data,
        _operators(model),
        arena_of(model).least_bytes,
        max((part.scratch_fast_bytes or 0 for part in npu), default=0),
        variables_of(model),
        len(npu),
    )


def _operators(model: Model) -> Sequence[TflmOperator]:
    """Return the operators of all subgraphs, each once. E471 for one that there is not."""
    operators: dict[str, TflmOperator] = {}
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            if operator.kind not in OPERATORS:
                raise fail(
                    "E471",
                    f"TensorFlow Lite Micro must have a kernel for {operator.kind}, and has none",
                    origin=model.origin(operator, subgraph),
                    help="replace the operator in the model, or export --to c",
                )
            operators[operator.kind] = OPERATORS[operator.kind]
    return list(operators.values())
