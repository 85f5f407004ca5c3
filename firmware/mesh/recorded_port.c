/* A port to nowhere: what comes in was recorded, and what goes out is compared with what was. */
#include "mesh_port.h"
#include "recorded.h"

static uint32_t next;
static uint32_t compared;
static uint32_t wrong;

void recorded_begin(void)
{
    next = 0;
}

uint32_t recorded_compared(void)
{
    return compared;
}

uint32_t recorded_wrong(void)
{
    return wrong;
}

int recorded_is_complete(void)
{
    return next == recorded_count;
}

/* The bytes of an instruction's box for an image; none if another one was recorded here. */
static const uint8_t *bytes_of(recorded_kind kind, uint32_t number, const mesh_box *box,
                               uint32_t image)
{
    const recorded_row *row = &recorded_rows[next];
    if (row->kind != kind || row->number != number) {
        wrong++;
        return 0;
    }
    next++;
    return row->bytes + image * mesh_box_bytes(box);
}

static void take(recorded_kind kind, uint32_t number, const mesh_box *box, uint32_t image)
{
    const uint8_t *bytes = bytes_of(kind, number, box, image);
    if (bytes != 0) {
        mesh_box_put(box, bytes);
    }
}

static void look(recorded_kind kind, uint32_t number, const mesh_box *box, uint32_t image)
{
    const uint8_t *bytes = bytes_of(kind, number, box, image);
    if (bytes != 0) {
        compared++;
        wrong += mesh_box_differs(box, bytes) != 0 ? 1u : 0u;
    }
}

void mesh_fetch(uint32_t tensor, const mesh_box *box, uint32_t image)
{
    take(RECORDED_FETCH, tensor, box, image);
}

void mesh_receive(uint32_t message, const mesh_box *box, uint32_t image)
{
    take(RECORDED_RECEIVE, message, box, image);
}

void mesh_send(uint32_t message, const mesh_box *box, uint32_t image)
{
    look(RECORDED_SEND, message, box, image);
}

void mesh_give(uint32_t tensor, const mesh_box *box, uint32_t image)
{
    look(RECORDED_GIVE, tensor, box, image);
}

void mesh_fault(uint32_t status)
{
    (void)status;
    wrong++;
}

void mesh_claim(uint32_t region, uint32_t image)
{
    (void)region;
    (void)image;
}

void mesh_release(uint32_t region, uint32_t image)
{
    (void)region;
    (void)image;
}
