"""Operators that TOSA has no form of, on the kernels of the C runtime.

An operation carries the network of its operator (`mizzen.mesh.network.kernels`); what executes it
on a single device executes it on an element: the network's container, opened in scratch memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.artifact.loading import artifact_of
from mizzen.diagnostics import MizzenError
from mizzen.export.c.container import c_container
from mizzen.graph import Operation
from mizzen.mesh.export.c_text import lines_of
from mizzen.mesh.network.kernels import carried
from mizzen.ops.control_flow import Custom
from mizzen.package.c.project import kernels_of
from mizzen.package.c.reader import decode


@dataclass(frozen=True, slots=True)
class Container:
    """A container of an operator; `inputs` and `outputs` are its operands and results, in order."""

    data: bytes
    arena_bytes: int
    kernels: tuple[str, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Containers:
    """The containers of an element's operators, each once."""

    def __init__(self) -> None:
        self._made: dict[bytes, Container | None] = {}
        self._names: dict[bytes, str] = {}

    def find(self, operation: Operation) -> Container | None:
        """Return the container of an operation; None if the C runtime has no kernel for it."""
        if not isinstance(operation, Custom):
            return None
        key = operation.implementation_attrs
        if key not in self._made:
            self._made[key] = _container(operation)
        return self._made[key]

    def name(self, container: Container) -> str:
        """Return the name in C of a container that is used."""
        return self._names.setdefault(container.data, f"container{len(self._names)}")

    @property
    def kernels(self) -> list[str]:
        """The kernels that are used, each once."""
        used = (each for each in self._made.values() if each and each.data in self._names)
        return list(dict.fromkeys(name for each in used for name in each.kernels))

    @property
    def definitions(self) -> list[str]:
        """The arrays of the containers that are used."""
        return [
            f"ELEMENT_CONSTANT static const uint8_t {name}[{len(data)}]\n"
            f"    __attribute__((aligned(16))) = {{\n{lines_of(map(str, data))}\n}};"
            for data, name in self._names.items()
        ]


def _container(operation: Custom) -> Container | None:
    part = carried(operation)
    if part is None or any(is_unsigned for _, is_unsigned in (*part.inputs, *part.outputs)):
        return None
    try:
        made = c_container(artifact_of(part.network, operation.operator_name))
    except MizzenError:
        return None
    header = decode(made.data).header
    return Container(
        made.data,
        header["arena_bytes"],
        tuple(kernels_of(made.program)),
        tuple(place for place, _ in part.inputs),
        tuple(place for place, _ in part.outputs),
    )
