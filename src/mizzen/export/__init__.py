"""Projects that build: an artifact, a board and a runtime joined into sources.

Each runtime is a folder here: `c` for Mizzen's own, `tflm`, `executorch`. It takes an artifact
apart, lets the package of that runtime write its container, and lays sources, the board's header
and linker script beside it, so that a compiler is all that is still needed. `board_fit` says
beforehand what is in the way; `runner` needs no compiler, for boards that are emulated.

It must not know compilers: what it exports has been compiled.
"""

from mizzen.export.board_fit import BoardFit, Headroom, board_fit, memory_fit
from mizzen.export.c.container import CContainer, c_container
from mizzen.export.c.project import c_project
from mizzen.export.executorch.project import executorch_project
from mizzen.export.onto_board import with_page
from mizzen.export.project import Project, Request
from mizzen.export.runner import runner
from mizzen.export.runtimes import RUNTIMES, checkouts_for
from mizzen.export.tflm.project import tflm_project

__all__ = [
    "RUNTIMES",
    "BoardFit",
    "CContainer",
    "Headroom",
    "Project",
    "Request",
    "board_fit",
    "c_container",
    "c_project",
    "checkouts_for",
    "executorch_project",
    "memory_fit",
    "runner",
    "tflm_project",
    "with_page",
]
