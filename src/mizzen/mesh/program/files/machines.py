"""The machine in a program's file."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.graph import Array
from mizzen.mesh.machine import (
    Arrangement,
    CoreCosts,
    Dram,
    ElementKind,
    Energy,
    Host,
    MacArray,
    Machine,
    Overflow,
)
from mizzen.mesh.program.files.container import Arrays, wrong

if TYPE_CHECKING:
    from mizzen.mesh.program.files.header import KindPart, MachinePart

TABLES: dict[str, tuple[str, str]] = {
    "element_kind": ("element", "<i8"),
    "element_router": ("element", "<i8"),
    "element_dead": ("element", "|b1"),
    "element_reserved": ("element", "|b1"),
    "router_chip": ("router", "<i8"),
    "router_x": ("router", "<i8"),
    "router_y": ("router", "<i8"),
    "chip_x": ("chip", "<i8"),
    "chip_y": ("chip", "<i8"),
    "link_source": ("link", "<i8"),
    "link_target": ("link", "<i8"),
    "link_kind": ("link", "<i8"),
    "link_bytes_per_s": ("link", "<f8"),
    "link_latency_s": ("link", "<f8"),
    "link_dead": ("link", "|b1"),
}
"""Tables of a machine: what has a row there, and the type."""

INDICES = {
    "element_kind": "kind",
    "element_router": "router",
    "router_chip": "chip",
    "link_source": "router",
    "link_target": "router",
    "link_kind": "link kind",
}
"""Tables of indices, and of what."""

LINK_KINDS = 2
MOST_PLACES = 1 << 20


def machine_header(machine: Machine) -> dict[str, Any]:
    """Return the header's part about a machine."""
    plain = {
        field.name: getattr(machine, field.name)
        for field in fields(machine)
        if field.name not in TABLES
    }
    kinds = [asdict(kind) for kind in machine.kinds]
    for kind in kinds:
        if kind["array"] is not None:
            kind["array"]["overflow"] = kind["array"]["overflow"].value
    return {
        **plain,
        "kinds": kinds,
        "arrangement": machine.arrangement.value,
        "drams": [asdict(dram) for dram in machine.drams],
        "host": None if machine.host is None else asdict(machine.host),
        "energy": asdict(machine.energy),
    }


def machine_tables(machine: Machine) -> dict[str, Array]:
    """Return the tables of a machine."""
    return {
        f"machine.{name}": np.asarray(getattr(machine, name)).astype(dtype)
        for name, (_, dtype) in TABLES.items()
    }


def read_machine(part: MachinePart, arrays: Arrays) -> Machine:
    """Return the machine of a file. E538 for tables that do not fit each other."""
    tables = {name: arrays.take(f"machine.{name}", dtype) for name, (_, dtype) in TABLES.items()}
    counts = {"kind": len(part.kinds), "link kind": LINK_KINDS}
    for name, (what, _) in TABLES.items():
        count = counts.setdefault(what, len(tables[name]))
        if len(tables[name]) != count or (not count and what != "link"):
            must = f"{max(count, 1)} rows, one for each {what}"
            raise wrong(arrays.name, f"machine.{name}", must, len(tables[name]))
    for name, table in tables.items():
        _check(arrays.name, name, table, counts)
    if (np.diff(tables["element_router"]) < 0).any():
        raise wrong(arrays.name, "machine.element_router", "in rising order", "otherwise")
    return Machine(
        **tables,
        name=part.name,
        description=part.description,
        kinds=tuple(map(_kind, part.kinds)),
        port_bytes_per_s=part.port_bytes_per_s,
        arrangement=Arrangement(part.arrangement),
        chip_columns=part.chip_columns,
        chip_rows=part.chip_rows,
        drams=tuple(Dram(**dram.as_dict()) for dram in part.drams),
        host=None if part.host is None else Host(**part.host.as_dict()),
        energy=Energy(**part.energy.as_dict()),
        digest=part.digest,
    )


def _check(file: str, name: str, table: Array, counts: dict[str, int]) -> None:
    if name in INDICES:
        limit = counts[INDICES[name]]
    elif table.dtype.kind == "i":
        limit = MOST_PLACES
    elif table.dtype.kind == "f":
        if not (np.isfinite(table) & (table >= 0)).all():
            raise wrong(file, f"machine.{name}", "numbers from 0", "others")
        return
    else:
        if (table.view(np.uint8) > 1).any():
            raise wrong(file, f"machine.{name}", "0 or 1", "others")
        return
    if table.size and (table.min() < 0 or table.max() >= limit):
        came = int(table.min() if table.min() < 0 else table.max())
        raise wrong(file, f"machine.{name}", f"from 0 to {limit - 1}", came)


def _kind(part: KindPart) -> ElementKind:
    array = part.array and MacArray(
        part.array.rows,
        part.array.columns,
        part.array.accumulator_bits,
        Overflow(part.array.overflow),
        part.array.depthwise_columns,
    )
    core = CoreCosts(**part.core.as_dict())
    plain: dict[str, Any] = {**vars(part), "array": array, "core": core}
    return ElementKind(**plain)
