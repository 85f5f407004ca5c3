"""An artifact as a project of the C runtime for a board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mizzen.boards import Role
from mizzen.export.c.container import CContainer, c_container, container_manifest
from mizzen.export.drop_in import joined
from mizzen.export.external import Apart, External, below, place_of, require_room
from mizzen.export.project import Project, Request, example_of, require_memory, surroundings
from mizzen.package.c.apart import constants_apart, model_apart
from mizzen.package.c.project import FileMacros, Linked, kernels_of, project_files
from mizzen.package.c.reader import decode

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact


MANIFEST = "manifest.json"
"""What the container says of itself, beside it: in one line, to be signed as it is."""


def c_project(artifact: Artifact, request: Request) -> Project:
    """Return the project of an artifact.

    Raises E450 to E466 as `c_container`, E415 for an NPU or memory mode that the board does not
    have, E468 if a memory of the board is too small, E711 to E713 for inputs that do not fit, E826
    and E827 for a file apart from the firmware that has no place.
    """
    container = c_container(artifact)
    mode = request.mode_for(artifact)
    if request.external is not None:
        return _in_two(artifact, request, request.external, container, mode)
    needed = container_needs(container.data)
    require_memory(request.board, mode, needed)
    around = surroundings(artifact, request, mode)
    example = example_of(artifact, request, mode, needed)
    files = project_files(container.data, container.program, around, example)
    manifest = container_manifest(container, artifact)
    if manifest is not None:
        files = {**files, MANIFEST: manifest.text() + b"\n"}
    kernels = kernels_of(container.program)
    made = Project(files, kernels, needed, mode, example.inferences, model=container.data)
    return joined(made, request)


def _in_two(
    artifact: Artifact, request: Request, external: External, container: CContainer, mode: str
) -> Project:
    """Return a project whose firmware takes weights, or the whole model, from a file apart.

    It has no manifest: none of its files is the whole container.
    """
    split = SPLITS[external.apart](container.data)
    place = place_of(request.board, mode, external, request.sdk, len(split.file))
    require_room(place, external, len(split.file))
    linked = replace(request, board=below(request.board, place))
    needed = {**container_needs(container.data), Role.MODEL: len(split.linked)}
    require_memory(linked.board, mode, needed)
    around = surroundings(artifact, linked, mode)
    example = example_of(artifact, linked, mode, needed)
    at = FileMacros(place.address, place.room_bytes, split.of)
    files = project_files(
        container.data, container.program, around, example, Linked(split.linked, at)
    )
    files = {**files, external.apart.file_name: split.file}
    kernels = kernels_of(container.program)
    return joined(Project(files, kernels, needed, mode, example.inferences), linked)


SPLITS = {Apart.CONSTANTS: constants_apart, Apart.MODEL: model_apart}
"""How a container is divided."""


def container_needs(container: bytes) -> Mapping[Role, int]:
    """Return the bytes that a container and its memories take, by role."""
    header = decode(container).header
    return {
        Role.MODEL: len(container),
        Role.ARENA: header["arena_bytes"],
        Role.FAST: header["fast_bytes"],
    }
