"""Export: the C sources of one element of a mapped network, with a test of it that builds.

`export_element` writes what the element's program says in C99: its memory map, constants, and
instructions for one image after the other. Sums of products are left to an accelerator behind
`mesh_array.h`, messages to a layer behind `mesh_port.h`; the project has plain C for the one, and
for the other what `record` saw when the program was executed here, so that the element, emulated by
itself, is compared byte by byte. It must not know who made the mapping.
"""

from mizzen.mesh.export.project import export_element
from mizzen.mesh.export.recording import Recording, record

__all__ = ["Recording", "export_element", "record"]
