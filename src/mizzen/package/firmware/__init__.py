"""What projects of every runtime have in common: sources of firmware, a board, an example.

A runtime's own package says which of the sources it takes and what it makes of a model; this one
reads them, writes C arrays and settings for make and CMake, and puts a project into a folder.

It must not know runtimes, artifacts or NPUs.
"""

from mizzen.package.firmware.project import (
    NO_EXAMPLE,
    Example,
    Sources,
    Surroundings,
    array,
    copied,
    example_source,
    header,
    surrounding_files,
    write_project,
)
from mizzen.package.firmware.sources import firmware_folder

__all__ = [
    "NO_EXAMPLE",
    "Example",
    "Sources",
    "Surroundings",
    "array",
    "copied",
    "example_source",
    "firmware_folder",
    "header",
    "surrounding_files",
    "write_project",
]
