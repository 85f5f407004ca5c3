"""The tables of elements: rows of integers for regions, instructions, tiles and routes.

A row is as the field lists below say; -1 stands for none. Boxes that are equal are stored once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mizzen.graph import Array
from mizzen.mesh.machine import Work, WorkKind
from mizzen.mesh.network.boxes import Box
from mizzen.mesh.program.files.container import Arrays, wrong
from mizzen.mesh.program.program import (
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

NONE = -1

COLUMNS: dict[str, tuple[str, ...]] = {
    "elements": ("element", "replica", "regions", "instructions"),
    "regions": ("kind", "address", "slot_bytes", "slots", "tensor", "box"),
    "instructions": ("operation", "first", "second", "box"),
    "computes": (
        *("layer", "box", "channels_from", "channels_to", "adds_sums", "gives_sums"),
        *("operands", "sums", "constants", "output", "cycles"),
        *("work_kind", "pixels", "channels", "taps", "work_operands", "partials"),
    ),
    "routes": ("source", "size_bytes", "targets", "links"),
    "spans": ("from", "to"),
}
"""The columns of each table; the other arrays are lists of integers."""

LISTS = ("box_ranks", "compute_regions", "route_targets", "route_links")

REGION_KINDS = tuple(RegionKind)
WORK_KINDS = tuple(WorkKind)
OPERATIONS = (Fetch, Receive, Copy, Compute, Send, Give)


def encode(program: MeshProgram) -> dict[str, Array]:
    """Return the tables of a program."""
    return _Writer().tables(program)


class _Writer:
    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {name: [] for name in (*COLUMNS, *LISTS)}
        self.boxes: dict[Box, int] = {}

    def tables(self, program: MeshProgram) -> dict[str, Array]:
        """Return the arrays of a program, by name."""
        for element in program.elements:
            counts = len(element.regions), len(element.instructions)
            self.rows["elements"].append((element.element, element.replica, *counts))
            self.rows["regions"].extend(map(self._region, element.regions))
            self.rows["instructions"].extend(map(self._instruction, element.instructions))
        for route in program.routes:
            counts = len(route.targets), len(route.links)
            self.rows["routes"].append((route.source, route.size_bytes, *counts))
            self.rows["route_targets"].extend(route.targets)
            self.rows["route_links"].extend(route.links)
        for box in self.boxes:
            self.rows["box_ranks"].append(len(box))
            self.rows["spans"].extend(box)
        return {name: self._array(name) for name in self.rows}

    def _array(self, name: str) -> Array:
        array = np.array(self.rows[name], "<i8")
        return array.reshape(-1, len(COLUMNS[name])) if name in COLUMNS else array

    def _box(self, box: Box | None) -> int:
        return NONE if box is None else self.boxes.setdefault(box, len(self.boxes))

    def _region(self, region: Region) -> tuple[int, ...]:
        kind = REGION_KINDS.index(region.kind)
        tensor = NONE if region.tensor is None else region.tensor
        return kind, region.address, region.slot_bytes, region.slots, tensor, self._box(region.box)

    def _instruction(self, instruction: Instruction) -> tuple[int, ...]:
        operation = OPERATIONS.index(type(instruction))
        match instruction:
            case Fetch(tensor, region):
                return operation, tensor, region, NONE
            case Receive(first, second, box) | Send(first, second, box):
                return operation, first, second, self._box(box)
            case Copy(first, second, box) | Give(first, second, box):
                return operation, first, second, self._box(box)
            case Compute():
                self.rows["computes"].append(self._compute(instruction))
                named = (NONE if each is None else each for each in instruction.operands)
                self.rows["compute_regions"].extend((*named, *instruction.sums))
                return operation, len(self.rows["computes"]) - 1, NONE, NONE

    def _compute(self, compute: Compute) -> tuple[int, ...]:
        kernel, work = compute.kernel, compute.work
        start, stop = kernel.channels or (NONE, NONE)
        return (
            *(kernel.layer, self._box(kernel.box), start, stop, kernel.adds_sums),
            *(int(kernel.gives_sums), len(compute.operands), len(compute.sums)),
            *(
                NONE if compute.constants is None else compute.constants,
                compute.output,
                compute.cycles,
            ),
            *(WORK_KINDS.index(work.kind), work.pixels, work.channels, work.taps),
            *(work.operands, work.partials),
        )


def decode(
    arrays: Arrays,
) -> tuple[tuple[ElementProgram, ...], tuple[Route, ...]]:
    """Return the programs of elements and the routes. E538 for tables that do not fit."""
    reader = _Reader(arrays)
    return reader.elements(), reader.routes()


class _Reader:
    def __init__(self, arrays: Arrays) -> None:
        self.name = arrays.name
        tables = {name: arrays.take(name, "<i8", len(COLUMNS[name])) for name in COLUMNS}
        lists = {name: arrays.take(name, "<i8") for name in LISTS}
        self.rows: dict[str, list[Any]] = {
            name: array.tolist() for name, array in {**tables, **lists}.items()
        }
        self.boxes = self._boxes()
        self.compute_starts = self._starts(
            "computes", ("operands", "sums"), "compute_regions", len(self.rows["computes"])
        )

    def _column(self, table: str, column: str) -> Iterator[int]:
        place = COLUMNS[table].index(column)
        return (entry[place] for entry in self.rows[table])

    def _starts(
        self, table: str, columns: Sequence[str], parts: str, count: int
    ) -> list[list[int]]:
        """Return where the parts of each row begin in a list, after checking that all are there."""
        starts: list[list[int]] = []
        total = 0
        lengths = zip(*(self._column(table, column) for column in columns), strict=True)
        for place, counts in enumerate(lengths):
            here: list[int] = []
            for column, length in zip(columns, counts, strict=True):
                if not 0 <= length <= len(self.rows[parts]):
                    must = f"from 0 to {len(self.rows[parts])}"
                    raise wrong(self.name, f"{table}[{place}].{column}", must, length)
                here.append(total)
                total += length
            starts.append([*here, total])
        if total != len(self.rows[parts]):
            raise wrong(self.name, parts, f"{total} rows, as {table} says", len(self.rows[parts]))
        return starts

    def _boxes(self) -> list[Box]:
        spans, boxes, first = [tuple(span) for span in self.rows["spans"]], list[Box](), 0
        for place, rank in enumerate(self.rows["box_ranks"]):
            if not 0 <= rank <= len(spans) - first:
                must = f"from 0 to {len(spans) - first}"
                raise wrong(self.name, f"box_ranks[{place}]", must, rank)
            boxes.append(tuple(spans[first : first + rank]))
            first += rank
        if first != len(spans):
            raise wrong(self.name, "spans", f"{first} rows, as box_ranks says", len(spans))
        return boxes

    def _choice(self, field: str, value: int, choices: Sequence[Any]) -> Any:
        if not 0 <= value < len(choices):
            raise wrong(self.name, field, f"from 0 to {len(choices) - 1}", value)
        return choices[value]

    def _none(self, field: str, value: int) -> None:
        if value != NONE:
            raise wrong(self.name, field, f"{NONE}, since it has no meaning here", value)

    def _box(self, field: str, value: int) -> Box:
        return self._choice(field, value, self.boxes)

    def elements(self) -> tuple[ElementProgram, ...]:
        """Return the programs of all elements."""
        regions = [self._region(place, entry) for place, entry in enumerate(self.rows["regions"])]
        instructions = [
            self._instruction(f"instructions[{place}]", *entry)
            for place, entry in enumerate(self.rows["instructions"])
        ]
        of_regions = self._starts("elements", ["regions"], "regions", len(regions))
        of_rows = self._starts("elements", ["instructions"], "instructions", len(instructions))
        return tuple(
            ElementProgram(
                entry[0],
                entry[1],
                tuple(regions[slice(*of_regions[place])]),
                tuple(instructions[slice(*of_rows[place])]),
            )
            for place, entry in enumerate(self.rows["elements"])
        )

    def _region(self, place: int, entry: list[int]) -> Region:
        kind, address, slot_bytes, slots, tensor, box = entry
        return Region(
            self._choice(f"regions[{place}].kind", kind, REGION_KINDS),
            address,
            slot_bytes,
            slots,
            None if tensor == NONE else tensor,
            None if box == NONE else self._box(f"regions[{place}].box", box),
        )

    def _instruction(
        self, field: str, operation: int, first: int, second: int, box: int
    ) -> Instruction:
        kind: Any = self._choice(f"{field}.operation", operation, OPERATIONS)
        if kind is Fetch:
            self._none(f"{field}.box", box)
            return Fetch(first, second)
        if kind is Compute:
            self._none(f"{field}.second", second)
            self._none(f"{field}.box", box)
            computes = range(len(self.compute_starts))
            return self._compute(self._choice(f"{field}.first", first, computes))
        return kind(first, second, self._box(f"{field}.box", box))

    def _compute(self, place: int) -> Compute:
        field = f"computes[{place}]"
        values = dict(zip(COLUMNS["computes"], self.rows["computes"][place], strict=True))
        operands, sums, end = self.compute_starts[place]
        regions = self.rows["compute_regions"]
        channels = values["channels_from"], values["channels_to"]
        kernel = Kernel(
            values["layer"],
            self._box(f"{field}.box", values["box"]),
            None if channels == (NONE, NONE) else channels,
            values["adds_sums"],
            self._choice(f"{field}.gives_sums", values["gives_sums"], (False, True)),
        )
        work = Work(
            self._choice(f"{field}.work_kind", values["work_kind"], WORK_KINDS),
            *(values[name] for name in ("pixels", "channels", "taps", "work_operands", "partials")),
        )
        return Compute(
            kernel,
            tuple(None if each == NONE else each for each in regions[operands:sums]),
            tuple(regions[sums:end]),
            None if values["constants"] == NONE else values["constants"],
            values["output"],
            work,
            values["cycles"],
        )

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of all messages."""
        targets = self._starts("routes", ["targets"], "route_targets", len(self.rows["routes"]))
        links = self._starts("routes", ["links"], "route_links", len(self.rows["routes"]))
        return tuple(
            Route(
                entry[0],
                tuple(self.rows["route_targets"][slice(*targets[place])]),
                tuple(self.rows["route_links"][slice(*links[place])]),
                entry[1],
            )
            for place, entry in enumerate(self.rows["routes"])
        )
