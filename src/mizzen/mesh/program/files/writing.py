"""Write a program as a file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from mizzen.files import write_file
from mizzen.mesh.program.files.container import pack
from mizzen.mesh.program.files.machines import machine_header, machine_tables
from mizzen.mesh.program.files.networks import network_header
from mizzen.mesh.program.files.tables import encode
from mizzen.mesh.program.program import MeshProgram

STREAM = "stream."
"""What the names of arrays that are artifacts begin with."""


def program_bytes(program: MeshProgram) -> bytes:
    """Return a program's file; the same program gives the same bytes."""
    network, constants = network_header(program.network)
    streams = [
        {"npu": npu, "array": f"{STREAM}{index}", **asdict(kernel)}
        for index, (npu, kernel) in enumerate(program.streams)
    ]
    header = {
        "replicas": program.replicas,
        "machine": machine_header(program.machine),
        "network": network,
        "streams": streams,
    }
    artifacts = {
        f"{STREAM}{index}": np.frombuffer(data, np.uint8)
        for index, data in enumerate(program.streams.values())
    }
    tables = {**machine_tables(program.machine), **encode(program)}
    return pack(header, {**tables, **constants, **artifacts})


def write_program(program: MeshProgram, path: Path) -> int:
    """Write a program's file and return its bytes. E201 and E207 if it cannot be."""
    content = program_bytes(program)
    write_file(path, content)
    return len(content)
