"""Programs: what each element of a machine holds and does, for one image after the other.

An `ElementProgram` is a memory map and a list of instructions, executed from the first to the last
for each image; messages carry boxes of tensors between elements. Programs are files of a
documented, versioned format, and all that simulation, execution and export read.
"""

from mizzen.mesh.program.checker import Finding, Rule, check
from mizzen.mesh.program.files import (
    parse_program,
    program_bytes,
    read_program,
    write_program,
)
from mizzen.mesh.program.listing import listing
from mizzen.mesh.program.program import (
    ALIGNMENT_BYTES,
    SUM_BYTES,
    Compute,
    Copy,
    ElementProgram,
    Fetch,
    Give,
    Instruction,
    Kernel,
    MeshProgram,
    Receive,
    Region,
    RegionKind,
    Route,
    Send,
)
from mizzen.mesh.program.surviving import surviving

__all__ = [
    "ALIGNMENT_BYTES",
    "SUM_BYTES",
    "Compute",
    "Copy",
    "ElementProgram",
    "Fetch",
    "Finding",
    "Give",
    "Instruction",
    "Kernel",
    "MeshProgram",
    "Receive",
    "Region",
    "RegionKind",
    "Route",
    "Rule",
    "Send",
    "check",
    "listing",
    "parse_program",
    "program_bytes",
    "read_program",
    "surviving",
    "write_program",
]
