"""Read the file of a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.diagnostics import fail
from mizzen.documents import parse
from mizzen.mesh.program.checker.structure import structure_findings
from mizzen.mesh.program.files.container import FORM, Arrays, unpack
from mizzen.mesh.program.files.machines import read_machine
from mizzen.mesh.program.files.networks import read_network
from mizzen.mesh.program.files.tables import decode
from mizzen.mesh.program.program import Kernel, MeshProgram

if TYPE_CHECKING:
    from mizzen.mesh.program.files.header import StreamPart


def read_program(path: Path) -> MeshProgram:
    """Read a program's file. E542 if it cannot be read, and what `parse_program` raises."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise fail("E542", f"{path} must be readable: {error.strerror}") from error
    return parse_program(content, path.name)


def parse_program(content: bytes, name: str) -> MeshProgram:
    """Make a program of a file's content; `name` is what errors call the file.

    E537 for what is no such file or damaged, E538 for a field that is wrong. Everything that
    the program names exists; whether it can be executed is for `check` to say.
    """
    from mizzen.mesh.program.files.header import Header

    header, payload = unpack(content, name)
    parsed = parse(Header, header, name, FORM)
    places = {key: (entry.type, entry.shape, entry.offset) for key, entry in parsed.arrays.items()}
    arrays = Arrays(name, places)
    arrays.payload = payload
    machine = read_machine(parsed.machine, arrays)
    network = read_network(parsed.network, arrays)
    elements, routes = decode(arrays)
    streams = _streams(arrays, parsed.streams)
    program = MeshProgram(machine, network, parsed.replicas, elements, routes, streams)
    for finding in structure_findings(program):
        raise fail("E538", f"{name}, {finding}", help=FORM.help)
    return program


def _streams(arrays: Arrays, streams: Sequence[StreamPart]) -> dict[tuple[str, Kernel], bytes]:
    return {
        (
            stream.npu,
            Kernel(stream.layer, stream.box, stream.channels, stream.adds_sums, stream.gives_sums),
        ): arrays.take(stream.array, "|u1").tobytes()
        for stream in streams
    }
