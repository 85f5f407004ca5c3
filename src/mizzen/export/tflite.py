"""An artifact as the file that a runtime on the board loads: Linux's, or MicroPython's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.artifact.forms import own_ending
from mizzen.boards import Role
from mizzen.diagnostics import fail
from mizzen.export.project import Project, Request, require_memory
from mizzen.export.tflm.project import model_of

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact

ENDING = ".tflite"


def tflite_project(artifact: Artifact, request: Request) -> Project:
    """Return the file of an artifact.

    E472 for what is no TFLite network, E415 and E442 for an NPU or memory mode that the board does
    not have, E468 if a memory of the board is too small.
    """
    if own_ending(artifact.data) != ENDING:
        raise fail(
            "E472",
            f"the file must be a TFLite network, and {artifact.name} is a "
            f"{own_ending(artifact.data)} file",
            help="choose --to c or --to executorch",
        )
    if artifact.accelerator is not None:
        request.board.require_npu(artifact.accelerator)
    mode = request.mode_for(artifact)
    model = model_of(artifact)
    needed = {
        Role.MODEL: len(model.network),
        Role.ARENA: model.arena_bytes,
        Role.FAST: model.fast_bytes,
    }
    require_memory(request.board, mode, needed)
    kinds = [operator.kind for operator in model.operators]
    return Project({artifact.name: artifact.data}, kinds, needed, mode, 0)
