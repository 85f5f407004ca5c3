/* What an element needs of the layer that moves messages between elements. Its owner writes these
 * functions; recorded_port.c has them for a single element that is tested by itself.
 *
 * Images are counted from 0 as they come to this element. Messages are numbered over the whole
 * machine, tensors over the network.
 *
 * Slots and credits. A region that messages come to has `slots` places, and image n's messages go
 * to place n modulo `slots`, as soon as it is free, even before mesh_receive asks for them: what a
 * message is written to is known beforehand, from element_arrivals. At the start all places are
 * free, so that each sender has as many credits as the region it sends to has slots. mesh_release
 * says that the place of an image is free again: each sender of a message to that region gets one
 * credit back. A message has credits of its own at each of its targets, and is sent once all of
 * them have one.
 *
 * A box to send stays as it is until mesh_claim asks for its place again, `slots` images later.
 * mesh_send may therefore return before the box is away, and mesh_claim must wait until it is. */
#ifndef MESH_PORT_H
#define MESH_PORT_H

#include "mesh_box.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fill a box with its part of a network's input, from outside. */
void mesh_fetch(uint32_t tensor, const mesh_box *box, uint32_t image);

/* Return once a message of this image is in its box. */
void mesh_receive(uint32_t message, const mesh_box *box, uint32_t image);

/* Send a box as a message, once each of its targets has a place for it. */
void mesh_send(uint32_t message, const mesh_box *box, uint32_t image);

/* Give a box of a network's output to the outside. */
void mesh_give(uint32_t tensor, const mesh_box *box, uint32_t image);

/* Return once nothing that was sent from a region's place for this image is still on its way. */
void mesh_claim(uint32_t region, uint32_t image);

/* A kernel of the C runtime (mesh_kernel.h) could not compute: `status` is an mz_status. What the
 * element gives for this image is not the network's. */
void mesh_fault(uint32_t status);

/* What came to a region for this image is no longer needed. */
void mesh_release(uint32_t region, uint32_t image);

#ifdef __cplusplus
}
#endif

#endif
