"""Files of programs: one file has the machine, the network, every element's program, the routes.

The form is in `docs/reference/mesh-program.md`. A file is validated whole when it is read, with its
checksum first: whatever comes is an error that names the field, or a program whose parts exist.
Constants are stored once for all elements and replicas; networks of shapes only have none.
"""

from mizzen.mesh.program.files.reading import parse_program, read_program
from mizzen.mesh.program.files.writing import program_bytes, write_program

__all__ = ["parse_program", "program_bytes", "read_program", "write_program"]
