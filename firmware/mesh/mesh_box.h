/* Boxes of tensors in the data memory of an element. */
#ifndef MESH_BOX_H
#define MESH_BOX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors have so many axes here; those of fewer have axes of extent 1 in front. */
#define MESH_AXES 6u

/* Part of the data memory: `slots` boxes of a tensor one behind the other. What belongs to image n
 * lies in slot n modulo `slots`, where images are counted as they come to this element. */
typedef struct {
    uint32_t address; /* of the first byte, from the begin of the data memory */
    uint32_t slot_bytes;
    uint32_t slots;
} mesh_region;

/* A box in a slot of a region: what an instruction moves. */
typedef struct {
    uint32_t region;
    uint32_t offset; /* bytes from the begin of the slot */
    uint32_t item_bytes;
    uint32_t first[MESH_AXES]; /* in the tensor's coordinates */
    uint32_t extents[MESH_AXES];
    uint32_t strides[MESH_AXES]; /* bytes from one to the next */
} mesh_place;

/* The same for one image, by an address. In a message it is dense, the last axis fastest. */
typedef struct {
    uint8_t *data;
    const mesh_place *place;
} mesh_box;

mesh_box mesh_box_at(uint8_t *memory, const mesh_region *regions, const mesh_place *place,
                     uint32_t image);

/* Bytes of all elements. */
uint32_t mesh_box_bytes(const mesh_box *box);

/* From a box of the same extents; from dense bytes; to dense bytes. */
void mesh_box_copy(const mesh_box *to, const mesh_box *from);
void mesh_box_put(const mesh_box *to, const uint8_t *from);
void mesh_box_take(const mesh_box *from, uint8_t *to);

/* Whether a box has other elements than dense bytes say. */
int mesh_box_differs(const mesh_box *box, const uint8_t *expected);

#ifdef __cplusplus
}
#endif

#endif
