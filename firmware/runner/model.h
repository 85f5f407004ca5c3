/* The model and its example, which are put behind the head below when firmware is made of them:
 * so one build runs every artifact. */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

#include "runner_sizes.h"

/* Offsets count from the head; all of them are multiples of 16. */
struct runner_head {
    uint32_t container_offset;
    uint32_t container_bytes;
    uint32_t inputs_offset;
    uint32_t outputs_offset;
    uint32_t inferences;
};

extern const volatile struct runner_head runner_head;

#define RUNNER_AT(offset) ((const uint8_t *)(uintptr_t)&runner_head + (offset))

#define MODEL_BYTES (runner_head.container_bytes)
#define MODEL_ARENA_BYTES RUNNER_ARENA_BYTES
#define MODEL_FAST_BYTES RUNNER_FAST_BYTES
#define EXAMPLE_INFERENCES ((int32_t)runner_head.inferences)

#define model_container RUNNER_AT(runner_head.container_offset)
#define example_inputs RUNNER_AT(runner_head.inputs_offset)
#define example_outputs RUNNER_AT(runner_head.outputs_offset)

#endif
