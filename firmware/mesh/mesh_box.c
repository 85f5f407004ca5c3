#include "mesh_box.h"

#include <string.h>

mesh_box mesh_box_at(uint8_t *memory, const mesh_region *regions, const mesh_place *place,
                     uint32_t image)
{
    const mesh_region *region = &regions[place->region];
    mesh_box box;
    box.data = memory + region->address + (image % region->slots) * region->slot_bytes +
               place->offset;
    box.place = place;
    return box;
}

static uint32_t elements(const mesh_place *place)
{
    uint32_t count = 1;
    uint32_t axis;
    for (axis = 0; axis < MESH_AXES; axis++) {
        count *= place->extents[axis];
    }
    return count;
}

uint32_t mesh_box_bytes(const mesh_box *box)
{
    return elements(box->place) * box->place->item_bytes;
}

/* Offset of an element by its index in the dense order. */
static uint32_t offset_of(const mesh_place *place, uint32_t index)
{
    uint32_t offset = 0;
    uint32_t axis = MESH_AXES;
    while (axis-- > 0u) {
        offset += (index % place->extents[axis]) * place->strides[axis];
        index /= place->extents[axis];
    }
    return offset;
}

void mesh_box_copy(const mesh_box *to, const mesh_box *from)
{
    const uint32_t count = elements(to->place);
    uint32_t i;
    for (i = 0; i < count; i++) {
        memcpy(to->data + offset_of(to->place, i), from->data + offset_of(from->place, i),
               to->place->item_bytes);
    }
}

void mesh_box_put(const mesh_box *to, const uint8_t *from)
{
    const uint32_t count = elements(to->place);
    const uint32_t bytes = to->place->item_bytes;
    uint32_t i;
    for (i = 0; i < count; i++) {
        memcpy(to->data + offset_of(to->place, i), from + i * bytes, bytes);
    }
}

void mesh_box_take(const mesh_box *from, uint8_t *to)
{
    const uint32_t count = elements(from->place);
    const uint32_t bytes = from->place->item_bytes;
    uint32_t i;
    for (i = 0; i < count; i++) {
        memcpy(to + i * bytes, from->data + offset_of(from->place, i), bytes);
    }
}

int mesh_box_differs(const mesh_box *box, const uint8_t *expected)
{
    const uint32_t bytes = mesh_box_bytes(box);
    const uint32_t item = box->place->item_bytes;
    uint32_t i;
    for (i = 0; i < bytes; i++) {
        if (box->data[offset_of(box->place, i / item) + i % item] != expected[i]) {
            return 1;
        }
    }
    return 0;
}
