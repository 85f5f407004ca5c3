/* Executes compiled networks: a container of Mizzen's, its kernels, and an NPU.
 *
 * The container stays where it is, in flash as a rule; an arena and, where the NPU stages data in
 * memory of its own, a fast memory are the caller's. Nothing is allocated, and nothing outside
 * these three is written. mz_open looks at every word of the container before anything of it is
 * used, so that one that is damaged ends as an error. */
#ifndef MIZZEN_H
#define MIZZEN_H

#include <stddef.h>
#include <stdint.h>

#include "mizzen_format.h"

typedef enum {
    MZ_OK = 0,
    MZ_ERROR_FORMAT = 1,     /* no container, or one of another version */
    MZ_ERROR_DAMAGED = 2,    /* an offset, a size or an index does not hold */
    MZ_ERROR_MEMORY = 3,     /* the arena or the fast memory is too small, or not aligned */
    MZ_ERROR_KERNEL = 4,     /* the table of kernels lacks one that the container needs */
    MZ_ERROR_ARGUMENT = 5,   /* a kernel does not take the arguments of a call */
    MZ_ERROR_OTHER_NPU = 6,  /* the container is for another NPU than there is */
    MZ_ERROR_NPU = 7,        /* the NPU stopped with a fault */
    MZ_ERROR_TIMEOUT = 8,    /* the NPU did not end */
    MZ_ERROR_INDEX = 9,      /* an index among the data is outside of its table */
    MZ_ERROR_OTHER_FILE = 10, /* a file that lies apart is of another program or interface */
    MZ_ERROR_CHECKSUM = 11    /* a file that lies apart is not whole */
} mz_status;

/* A tensor: densely packed, the last extent fastest. */
typedef struct {
    void *data;
    const uint32_t *extents;
    const float *scales;        /* scale_count of them */
    const int32_t *zero_points; /* scale_count of them */
    uint32_t bytes;
    uint32_t count; /* elements */
    uint32_t type;  /* an mz_element_type */
    uint32_t rank;
    uint32_t scale_count;
    uint32_t axis; /* of scales */
} mz_tensor;

typedef struct mz_context mz_context;
typedef struct mz_npu mz_npu;

/* One call of a kernel. Kernels are called once by mz_open, with `checking`, and look at their
 * arguments then; what they read and write is in mizzen_kernel.h. */
typedef struct {
    const mz_context *context;
    const mz_kernel_call_row *row;
    int checking;
} mz_call;

typedef mz_status (*mz_kernel_function)(const mz_call *call);

typedef struct {
    uint32_t id;
    mz_kernel_function run;
} mz_kernel;

/* What is open. Its members are the runtime's own. */
struct mz_context {
    const uint8_t *container;
    const uint8_t *constants;
    const mz_header_row *header;
    uint8_t *arena;
    uint8_t *fast;
    const mz_kernel *kernels;
    mz_npu *npu;
    uint32_t step; /* the last one that was begun: where an error came from */
};

/* Check a container and make it ready, states as they are before the first inference.
 *
 * container  aligned to 16 bytes, like arena and fast; stays where it is while it is open
 * kernels    ends with a row of id 0; NULL where the container needs none
 * npu        NULL where the container needs none */
mz_status mz_open(mz_context *context, const void *container, size_t container_bytes, void *arena,
                  size_t arena_bytes, void *fast, size_t fast_bytes, const mz_kernel *kernels,
                  mz_npu *npu);

/* Likewise, with weights and constants in a file that lies apart and can be exchanged.
 *
 * program  what of the container comes before the constants
 * file     aligned to 16 bytes; file_bytes is the room for it, as the file says its own size.
 *          MZ_ERROR_OTHER_FILE for one of another program, MZ_ERROR_CHECKSUM for a damaged one:
 *          nothing of it has been used then */
mz_status mz_open_apart(mz_context *context, const void *program, size_t program_bytes,
                        const void *file, size_t file_bytes, void *arena, size_t arena_bytes,
                        void *fast, size_t fast_bytes, const mz_kernel *kernels, mz_npu *npu);

/* Check a file that lies apart, and find its contents: a whole container, for mz_open.
 *
 * of  what the contents must be for, which the export says: MODEL_INTERFACE */
mz_status mz_file_contents(const void *file, size_t file_bytes, uint32_t of, const void **contents,
                           size_t *contents_bytes);

/* Find an input or an output. What inputs hold is lost in an inference: set them before each. */
mz_status mz_input(const mz_context *context, uint32_t index, mz_tensor *tensor);
mz_status mz_output(const mz_context *context, uint32_t index, mz_tensor *tensor);

/* Execute one inference. */
mz_status mz_invoke(mz_context *context);

/* Forget all inferences. */
mz_status mz_reset_states(mz_context *context);

/* Say what a status means. */
const char *mz_status_text(mz_status status);

#endif
