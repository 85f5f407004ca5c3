/* A port for tests: whoever loads the element says what becomes of its messages. */
#include "element.h"
#include "mesh_port.h"

typedef void (*hook)(uint32_t kind, uint32_t number, uint32_t image, uint8_t *bytes,
                     uint32_t count);

enum { FETCH, RECEIVE, SEND, GIVE, CLAIM, RELEASE, FAULT };

static hook hooked;
static uint8_t bytes[ELEMENT_DATA_BYTES];

void attach(hook given);
void deliver(uint8_t *memory, uint32_t message, uint32_t image, const uint8_t *from);

void attach(hook given)
{
    hooked = given;
}

/* Write a message where it belongs, as soon as its slots are free. */
void deliver(uint8_t *memory, uint32_t message, uint32_t image, const uint8_t *from)
{
    uint32_t i;
    for (i = 0; i < ELEMENT_ARRIVALS; i++) {
        if (element_arrivals[i].message == message) {
            const mesh_box box =
                mesh_box_at(memory, element_regions, &element_arrivals[i].place, image);
            mesh_box_put(&box, from);
        }
    }
}

void mesh_fetch(uint32_t tensor, const mesh_box *box, uint32_t image)
{
    hooked(FETCH, tensor, image, bytes, mesh_box_bytes(box));
    mesh_box_put(box, bytes);
}

void mesh_receive(uint32_t message, const mesh_box *box, uint32_t image)
{
    (void)box;
    hooked(RECEIVE, message, image, 0, 0u);
}

void mesh_send(uint32_t message, const mesh_box *box, uint32_t image)
{
    mesh_box_take(box, bytes);
    hooked(SEND, message, image, bytes, mesh_box_bytes(box));
}

void mesh_give(uint32_t tensor, const mesh_box *box, uint32_t image)
{
    mesh_box_take(box, bytes);
    hooked(GIVE, tensor, image, bytes, mesh_box_bytes(box));
}

void mesh_claim(uint32_t region, uint32_t image)
{
    hooked(CLAIM, region, image, 0, 0u);
}

void mesh_release(uint32_t region, uint32_t image)
{
    hooked(RELEASE, region, image, 0, 0u);
}

void mesh_fault(uint32_t status)
{
    hooked(FAULT, status, 0u, 0, 0u);
}
