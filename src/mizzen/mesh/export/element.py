"""`element.c` and `element.h`: an element's memory map, constants and instructions in C."""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.escaping import c_comment
from mizzen.mesh.export.c_text import Constants, braced, count
from mizzen.mesh.export.kernels import Containers
from mizzen.mesh.export.tiles import Behind, tile_functions
from mizzen.mesh.export.views import dense_strides
from mizzen.mesh.network.boxes import Box, shape_of
from mizzen.mesh.program import (
    SUM_BYTES,
    Compute,
    Copy,
    ElementProgram,
    Fetch,
    Give,
    MeshProgram,
    Receive,
    RegionKind,
    Send,
)

AXES = 6
"""MESH_AXES of mesh_box.h."""

ARRIVING = (RegionKind.INPUT, RegionKind.SUMS)

HEADER = """\
/* {title}: made by Mizzen. */
#ifndef MESH_ELEMENT_H
#define MESH_ELEMENT_H

#include "mesh_box.h"

#ifdef __cplusplus
extern "C" {{
#endif

#define ELEMENT_INDEX {element}u
#define ELEMENT_REPLICA {replica}u

/* Data memory, which must begin at a multiple of 16 bytes. Regions of constants are kept free in
 * it: where constants are read from it, the linker places `element.c`'s arrays there. */
#define ELEMENT_DATA_BYTES {data_bytes}u

/*   region    address      bytes  slots
{map}
 *
 * One more lies behind them, {behind_bytes} bytes of scratch memory for what C keeps. */
#define ELEMENT_REGIONS {regions}u
extern const mesh_region element_regions[ELEMENT_REGIONS + 1u];

/* Messages that come to this element, and where each is written: see mesh_port.h. */
#define ELEMENT_ARRIVALS {arrivals}u
typedef struct {{
    uint32_t message;
    mesh_place place;
}} element_arrival;
extern const element_arrival element_arrivals[ELEMENT_ARRIVALS + 1u];

/* Do all that is to be done for one image; images are counted from 0 as they come here. */
void element_image(uint8_t *memory, uint32_t image);

#ifdef __cplusplus
}}
#endif

#endif
"""

SOURCE = """\
/* {title}: made by Mizzen. */
#include "element.h"

#include "mesh_array.h"
{kernels}#include "mesh_numbers.h"
#include "mesh_port.h"

/* Where constants lie: a section attribute of the owner's. */
#ifndef ELEMENT_CONSTANT
#define ELEMENT_CONSTANT
#endif

const mesh_region element_regions[ELEMENT_REGIONS + 1u] = {{
{regions}
    {{{behind}u, {behind_bytes}u, 1u}},
}};

const element_arrival element_arrivals[ELEMENT_ARRIVALS + 1u] = {{
{arrivals}
    {{0u, {no_place}}},
}};

static const mesh_place places[] = {{
{places}
    {no_place},
}};

{constants}
static mesh_box box_of(uint8_t *memory, uint32_t place, uint32_t image)
{{
    return mesh_box_at(memory, element_regions, &places[place], image);
}}
{slot}
{tiles}
void element_image(uint8_t *memory, uint32_t image)
{{
    mesh_box box;
{instructions}
    (void)box;
}}
"""

SLOT = """
static uint8_t *mesh_slot(uint8_t *memory, uint32_t region, uint32_t image)
{
    const mesh_region *row = &element_regions[region];
    return memory + row->address + (image % row->slots) * row->slot_bytes;
}
"""

NO_PLACE = "{0u, 0u, 1u, {0u}, {0u}, {0u}}"


def element_files(
    program: MeshProgram, element: ElementProgram, containers: Containers
) -> dict[str, str]:
    """Return the generated sources of an element. Raises E531 and E552 as its tiles do."""
    written = _Element(program, element, containers)
    return {"element.c": written.source(), "element.h": written.header()}


class _Element:
    def __init__(
        self, program: MeshProgram, element: ElementProgram, containers: Containers
    ) -> None:
        self.program = program
        self.containers = containers
        self.behind = Behind(program, element)
        self.element = element
        self.places: list[str] = []
        name = program.machine.element_name(element.element)
        self.title = c_comment(f"Element {element.element} ({name}) of {program.network.name}")

    @property
    def data_bytes(self) -> int:
        """Bytes of data memory, with what C keeps after the regions."""
        return (
            self.behind.address + self.behind.size if self.behind.size else self.element.data_bytes
        )

    def header(self) -> str:
        """Return `element.h`."""
        lines = [
            f" *   {region.kind.value:<10} {region.address:>6} {region.slot_bytes:>10} "
            f"{region.slots:>6}"
            for region in self.element.regions
        ]
        return HEADER.format(
            title=self.title,
            element=self.element.element,
            replica=self.element.replica,
            data_bytes=max(self.data_bytes, 1),
            behind_bytes=self.behind.size,
            map="\n".join(lines),
            regions=len(self.element.regions),
            arrivals=len(self._received()),
        )

    def source(self) -> str:
        """Return `element.c`."""
        constants = Constants()
        instructions = list(self._instructions())
        tiles = [
            tile_functions(
                self.program, self.element, index, constants, self.containers, self.behind
            )
            for index, each in enumerate(self.element.instructions)
            if isinstance(each, Compute)
        ]
        regions = [
            f"    {{{count(each.address)}, {count(each.slot_bytes)}, {count(each.slots)}}},"
            for each in self.element.regions
        ]
        arrivals = [
            f"    {{{count(each.message)}, {self._place(each.region, each.box)}}},"
            for each in self._received()
        ]
        return SOURCE.format(
            title=self.title,
            regions="\n".join(regions),
            behind=self.behind.address,
            behind_bytes=self.behind.size,
            arrivals="\n".join(arrivals),
            places="\n".join(f"    {place}," for place in self.places),
            no_place=NO_PLACE,
            kernels='#include "mesh_kernel.h"\n' if self.containers.kernels else "",
            constants="\n\n".join([*constants.definitions, *self.containers.definitions, ""]),
            slot=SLOT if tiles else "",
            tiles="\n".join(tiles),
            instructions="\n".join(f"    {line}" for line in instructions),
        )

    def _received(self) -> list[Receive]:
        return [each for each in self.element.instructions if isinstance(each, Receive)]

    def _place(self, region: int, box: Box) -> str:
        """Return the initialiser of a place: a box in a region, in six axes."""
        placed = self.element.regions[region]
        outer = placed.box
        assert outer is not None, "what is moved has a box"
        item_bytes = SUM_BYTES
        if placed.tensor is not None:
            item_bytes = self.program.network.tensors[placed.tensor].item_bytes
        strides = dense_strides(shape_of(outer), item_bytes)
        offset = sum(
            (start - first) * stride
            for (start, _), (first, _), stride in zip(box, outer, strides, strict=True)
        )
        missing = AXES - len(box)
        first = [0] * missing + [start for start, _ in box]
        extents = [1] * missing + list(shape_of(box))
        steps = [0] * missing + list(strides)
        numbers = ", ".join(map(count, (region, offset, item_bytes)))
        return f"{{{numbers}, {', '.join(map(braced, (first, extents, steps)))}}}"

    def _index(self, region: int, box: Box) -> int:
        place = self._place(region, box)
        if place not in self.places:
            self.places.append(place)
        return self.places.index(place)

    def _instructions(self) -> Iterable[str]:
        for index, each in enumerate(self.element.instructions):
            match each:
                case Copy():
                    yield from self._copied(each)
                case Compute():
                    yield from self._compute(index, each)
                case Fetch():
                    box = self.element.regions[each.region].box
                    assert box is not None, "what is fetched has a box"
                    yield from self._moved("fetch", each.tensor, each.region, box)
                case Receive():
                    yield from self._moved("receive", each.message, each.region, each.box)
                case Send():
                    yield from self._moved("send", each.message, each.region, each.box)
                case Give():
                    yield from self._moved("give", each.tensor, each.region, each.box)

    def _copied(self, each: Copy) -> Iterable[str]:
        source = self._index(each.source, each.box)
        yield "{"
        yield f"    const mesh_box from = box_of(memory, {count(source)}, image);"
        yield f"    box = box_of(memory, {count(self._index(each.target, each.box))}, image);"
        yield "    mesh_box_copy(&box, &from);"
        yield "}"

    def _moved(self, name: str, number: int, region: int, box: Box) -> Iterable[str]:
        yield f"box = box_of(memory, {count(self._index(region, box))}, image);"
        yield f"mesh_{name}({count(number)}, &box, image);"

    def _compute(self, index: int, each: Compute) -> Iterable[str]:
        yield f"mesh_claim({count(each.output)}, image);"
        yield f"compute_{index}(memory, image);"
        used = dict.fromkeys(
            region for region in (*each.operands, *each.sums) if region is not None
        )
        for region in used:
            if self.element.regions[region].kind in (RegionKind.INPUT, RegionKind.SUMS):
                yield f"mesh_release({count(region)}, image);"
