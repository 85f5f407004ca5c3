"""The machine: elements, routers, links, memories and what each costs, as data.

Files (TOML, version in the first key) are validated at the edge and become one frozen `Machine`,
whose tables are arrays, since a board has thousands of elements. It must know no network: what work
costs on an element is here, which work there is is not.
"""

from mizzen.mesh.machine.damage import damaged, without, without_chip
from mizzen.mesh.machine.machine import (
    Arrangement,
    CoreCosts,
    Dram,
    ElementKind,
    Energy,
    Host,
    LinkKind,
    MacArray,
    Machine,
    Overflow,
)
from mizzen.mesh.machine.reading import find_machine, machine_names, parse_machine, read_machine
from mizzen.mesh.machine.work import Work, WorkKind, cycles

__all__ = [
    "Arrangement",
    "CoreCosts",
    "Dram",
    "ElementKind",
    "Energy",
    "Host",
    "LinkKind",
    "MacArray",
    "Machine",
    "Overflow",
    "Work",
    "WorkKind",
    "cycles",
    "damaged",
    "find_machine",
    "machine_names",
    "parse_machine",
    "read_machine",
    "without",
    "without_chip",
]
