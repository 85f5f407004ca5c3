"""Execution: programs of elements, executed exactly, on engines behind one interface.

An element executes what its program says, on what its regions hold; nothing here knows mappings,
so what is wrong in a program shows. Tiles are computed by the operations of their layers, cut to
their boxes. `execute` gives the network's outputs, `compare` says how each tensor differs from the
whole network's integers.
"""

from mizzen.mesh.execution.cluster import OnRay
from mizzen.mesh.execution.comparison import TensorDifference, compare, reference
from mizzen.mesh.execution.engines import Engine, InProcess
from mizzen.mesh.execution.execution import Executed, execute, execute_through
from mizzen.mesh.execution.part import Loss
from mizzen.mesh.execution.processes import Processes

__all__ = [
    "Engine",
    "Executed",
    "InProcess",
    "Loss",
    "OnRay",
    "Processes",
    "TensorDifference",
    "compare",
    "execute",
    "execute_through",
    "reference",
]
