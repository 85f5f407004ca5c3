"""Networks from quantised PyTorch programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.mesh.network.graphs import network_of_graph
from mizzen.mesh.network.network import Network
from mizzen.mesh.network.opening import open_quantisation
from mizzen.ops.limits import WindowLimits

if TYPE_CHECKING:
    from torch.export import ExportedProgram

ANY_WINDOW = WindowLimits(1 << 30, 1 << 30)
"""A mesh has no limits of windows."""


def network_of_exported(program: ExportedProgram, name: str) -> Network:
    """Return the layers of a quantised PyTorch program, from its first integers to its last.

    Inputs and outputs are integers as the program quantises them, in the program's own shapes
    (`Network.edges`). E16x for a program that cannot be lowered, E506 for an operator that has no
    integer form.
    """
    from mizzen.frontends.torch.int_lowering.int_lower import lower
    from mizzen.frontends.torch.narrowing import read

    graph = lower(read(program, name), ANY_WINDOW).graph
    open_quantisation(graph)
    return network_of_graph(graph, name)
