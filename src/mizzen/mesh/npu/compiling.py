"""Compile the tiles of a program for the NPUs that its elements are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mizzen.artifact.sealing import unsealed
from mizzen.compiler.compile import compile
from mizzen.diagnostics import MizzenError
from mizzen.mesh.execution.cutting import cut
from mizzen.mesh.program import Compute, Kernel, MeshProgram
from mizzen.package.tosa import write

Progress = Callable[[str], None]


def compile_tiles(program: MeshProgram, progress: Progress | None = None) -> MeshProgram:
    """Return the program with a command stream for each tile that an element's NPU can compute.

    Tiles that are alike share a stream. Networks of shapes only have no operations, and get none.
    """
    if not program.network.is_executable:
        return program
    wanted = _tiles(program)
    streams: dict[tuple[str, Kernel], bytes] = {}
    for index, (npu, kernel) in enumerate(wanted):
        if progress is not None:
            progress(f"compiling tile {index + 1} of {len(wanted)} for {npu}")
        stream = _stream(program, npu, kernel)
        if stream is not None:
            streams[npu, kernel] = stream
    return replace(program, streams=streams)


def _tiles(program: MeshProgram) -> list[tuple[str, Kernel]]:
    """Return each tile of elements that are NPUs once."""
    tiles: dict[tuple[str, Kernel], None] = {}
    for element in program.elements:
        npu = program.machine.kind_of(element.element).npu
        if npu is None:
            continue
        for instruction in element.instructions:
            if (
                isinstance(instruction, Compute)
                and not instruction.kernel.gives_sums
                and not instruction.kernel.adds_sums
            ):
                tiles[npu, instruction.kernel] = None
    return list(tiles)


def _stream(program: MeshProgram, npu: str, kernel: Kernel) -> bytes | None:
    """Return a tile's artifact; None where its compiler refuses the tile."""
    try:
        artifact = compile(write(cut(program.network, kernel).graph), npu)
    except MizzenError:
        return None
    return unsealed(artifact.data, artifact.name) if artifact.accelerator == npu else None
