"""An artifact as a project of the C runtime for a board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mizzen.boards import Role
from mizzen.export.c.container import c_container, container_manifest
from mizzen.export.drop_in import joined
from mizzen.export.project import Project, Request, example_of, require_memory, surroundings
from mizzen.package.c.project import kernels_of, project_files
from mizzen.package.c.reader import decode

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact


MANIFEST = "manifest.json"
"""What the container says of itself, beside it: in one line, to be signed as it is."""


def c_project(artifact: Artifact, request: Request) -> Project:
    """Return the project of an artifact.

    Raises E450 to E466 as `c_container`, E415 for an NPU or memory mode that the board does not
    have, E468 if a memory of the board is too small, E711 to E713 for inputs that do not fit.
    """
    container = c_container(artifact)
    mode = request.mode_for(artifact)
    needed = container_needs(container.data)
    require_memory(request.board, mode, needed)
    around = surroundings(artifact, request, mode)
    example = example_of(artifact, request, mode, needed)
    files = dict(project_files(container.data, container.program, around, example))
    manifest = container_manifest(container, artifact)
    if manifest is not None:
        files[MANIFEST] = manifest.text() + b"\n"
    kernels = kernels_of(container.program)
    made = Project(files, kernels, needed, mode, example.inferences, model=container.data)
    return joined(made, request)


def container_needs(container: bytes) -> Mapping[Role, int]:
    """Return the bytes that a container and its memories take, by role."""
    header = decode(container).header
    return {
        Role.MODEL: len(container),
        Role.ARENA: header["arena_bytes"],
        Role.FAST: header["fast_bytes"],
    }
