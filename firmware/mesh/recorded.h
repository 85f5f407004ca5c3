/* What was recorded of an element: recorded.c has it. */
#ifndef MESH_RECORDED_H
#define MESH_RECORDED_H

#include <stdint.h>

typedef enum {
    RECORDED_END,
    RECORDED_FETCH,
    RECORDED_RECEIVE,
    RECORDED_SEND,
    RECORDED_GIVE
} recorded_kind;

/* An instruction that has to do with others, in the order of the program: the number of its message
 * or tensor, and the bytes of all images one behind the other. */
typedef struct {
    recorded_kind kind;
    uint32_t number;
    const uint8_t *bytes;
} recorded_row;

extern const uint32_t recorded_images;
extern const uint32_t recorded_count;
extern const recorded_row recorded_rows[];

/* Of recorded_port.c: begin an image; how many messages were compared, and how many differed. */
void recorded_begin(void);
uint32_t recorded_compared(void);
uint32_t recorded_wrong(void);

/* Whether the image took and gave exactly what was recorded. */
int recorded_is_complete(void);

#endif
