"""Write a program as a file."""

from __future__ import annotations

from pathlib import Path

from mizzen.diagnostics import fail
from mizzen.mesh.program.files.container import pack
from mizzen.mesh.program.files.machines import machine_header, machine_tables
from mizzen.mesh.program.files.networks import network_header
from mizzen.mesh.program.files.tables import encode
from mizzen.mesh.program.program import MeshProgram


def program_bytes(program: MeshProgram) -> bytes:
    """Return a program's file; the same program gives the same bytes."""
    network, constants = network_header(program.network)
    header = {
        "replicas": program.replicas,
        "machine": machine_header(program.machine),
        "network": network,
    }
    return pack(header, {**machine_tables(program.machine), **encode(program), **constants})


def write_program(program: MeshProgram, path: Path) -> int:
    """Write a program's file and return its bytes. E542 if it cannot be written."""
    content = program_bytes(program)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise fail("E542", f"{path} must be writable: {error.strerror}") from error
    return len(content)
