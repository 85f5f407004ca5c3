/* The container that the runtime executes, made of Mizzen's table of it: do not edit.
 *
 * All words are little-endian. Offsets are bytes from the container's start; places in the pool
 * are words from the pool's start. */
#ifndef MIZZEN_FORMAT_H
#define MIZZEN_FORMAT_H

#include <stdint.h>

#define MZ_FORMAT_MAGIC 0x314e5a4du
#define MZ_FORMAT_VERSION 2u
#define MZ_FILE_MAGIC 0x31465a4du
#define MZ_FORMAT_ALIGNMENT 16u
#define MZ_MAX_RANK 8u
#define MZ_NONE 0xffffffffu

/* Where a tensor lies. */
enum mz_place {
    MZ_PLACE_ARENA = 0,
    MZ_PLACE_CONTAINER = 1
};
#define MZ_PLACE_COUNT 2u

/* Types of elements. */
enum mz_element_type {
    MZ_ELEMENT_TYPE_BOOL = 0,
    MZ_ELEMENT_TYPE_UINT8 = 1,
    MZ_ELEMENT_TYPE_INT8 = 2,
    MZ_ELEMENT_TYPE_UINT16 = 3,
    MZ_ELEMENT_TYPE_INT16 = 4,
    MZ_ELEMENT_TYPE_UINT32 = 5,
    MZ_ELEMENT_TYPE_INT32 = 6,
    MZ_ELEMENT_TYPE_INT64 = 7,
    MZ_ELEMENT_TYPE_FLOAT32 = 8,
    MZ_ELEMENT_TYPE_UINT64 = 9,
    MZ_ELEMENT_TYPE_FLOAT64 = 10
};
#define MZ_ELEMENT_TYPE_COUNT 11u

/* Who executes a step. */
enum mz_step_kind {
    MZ_STEP_KIND_NPU = 0,
    MZ_STEP_KIND_KERNEL = 1
};
#define MZ_STEP_KIND_COUNT 2u

/* What an argument is; `low` and `high` of its row hold it. */
enum mz_argument_kind {
    MZ_ARGUMENT_KIND_TENSOR = 0,
    MZ_ARGUMENT_KIND_NUMBER = 1,
    MZ_ARGUMENT_KIND_NUMBERS = 2
};
#define MZ_ARGUMENT_KIND_COUNT 3u

/* What the kernels `binary` and `binary_scaled` compute of two elements. */
enum mz_binary {
    MZ_BINARY_ADD = 0,
    MZ_BINARY_SUBTRACT = 1,
    MZ_BINARY_MULTIPLY = 2,
    MZ_BINARY_DIVIDE = 3,
    MZ_BINARY_FLOOR_DIVIDE = 4,
    MZ_BINARY_MINIMUM = 5,
    MZ_BINARY_MAXIMUM = 6,
    MZ_BINARY_EQUAL = 7,
    MZ_BINARY_NOT_EQUAL = 8,
    MZ_BINARY_LESS = 9,
    MZ_BINARY_LESS_EQUAL = 10,
    MZ_BINARY_GREATER = 11,
    MZ_BINARY_GREATER_EQUAL = 12,
    MZ_BINARY_BITWISE_AND = 13,
    MZ_BINARY_BITWISE_OR = 14,
    MZ_BINARY_BITWISE_XOR = 15,
    MZ_BINARY_SQUARED_DIFFERENCE = 16,
    MZ_BINARY_SLOPE = 17,
    MZ_BINARY_MODULO = 18,
    MZ_BINARY_REMAINDER = 19
};
#define MZ_BINARY_COUNT 20u

/* What the kernel `unary` computes of an element. */
enum mz_unary {
    MZ_UNARY_ABSOLUTE = 0,
    MZ_UNARY_NEGATE = 1,
    MZ_UNARY_BITWISE_NOT = 2,
    MZ_UNARY_SQUARE_ROOT = 3,
    MZ_UNARY_INVERSE_SQUARE_ROOT = 4,
    MZ_UNARY_RECIPROCAL = 5,
    MZ_UNARY_EXPONENTIAL = 6,
    MZ_UNARY_LOGARITHM = 7,
    MZ_UNARY_TANH = 8,
    MZ_UNARY_SIGMOID = 9,
    MZ_UNARY_FLOOR = 10,
    MZ_UNARY_CEILING = 11,
    MZ_UNARY_ROUND = 12,
    MZ_UNARY_SIGN = 13,
    MZ_UNARY_ROUND_FROM_FLOOR = 14,
    MZ_UNARY_ERROR_FUNCTION = 15,
    MZ_UNARY_EXPONENTIAL_LESS_ONE = 16,
    MZ_UNARY_TRUNCATE = 17,
    MZ_UNARY_LOGARITHM_OF_ONE_AND = 18,
    MZ_UNARY_LOGARITHM_TO_2 = 19,
    MZ_UNARY_LOGARITHM_TO_10 = 20,
    MZ_UNARY_SINE = 21,
    MZ_UNARY_COSINE = 22
};
#define MZ_UNARY_COUNT 23u

/* What the kernel `reduce` makes of a row of elements. */
enum mz_reduction {
    MZ_REDUCTION_SUM = 0,
    MZ_REDUCTION_MEAN = 1,
    MZ_REDUCTION_MAXIMUM = 2,
    MZ_REDUCTION_MINIMUM = 3,
    MZ_REDUCTION_PRODUCT = 4,
    MZ_REDUCTION_ARGUMENT_OF_MAXIMUM = 5,
    MZ_REDUCTION_ARGUMENT_OF_MINIMUM = 6,
    MZ_REDUCTION_ANY = 7,
    MZ_REDUCTION_ALL = 8,
    MZ_REDUCTION_PLACE_OF_GREATEST = 9,
    MZ_REDUCTION_PLACE_OF_LEAST = 10,
    MZ_REDUCTION_GREATEST = 11,
    MZ_REDUCTION_LEAST = 12,
    MZ_REDUCTION_RUNNING_SUM = 13,
    MZ_REDUCTION_RUNNING_MEAN = 14
};
#define MZ_REDUCTION_COUNT 15u

/* What the kernel `pool` makes of a window; NaN is the maximum, but never the greatest. */
enum mz_pool {
    MZ_POOL_AVERAGE = 0,
    MZ_POOL_MAXIMUM = 1,
    MZ_POOL_GREATEST = 2
};
#define MZ_POOL_COUNT 3u

/* The first bytes of a container. */
typedef struct {
    uint32_t magic;              /* MZN1 */
    uint32_t version;            /* of the format */
    uint32_t bytes;              /* of the whole container */
    uint32_t npu_config;         /* CONFIG of the NPU that calls are for; 0 with npu_id of a container without any */
    uint32_t npu_id;             /* ID of the NPU that calls are for */
    uint32_t arena_bytes;        /* memory for tensors and for scratch memories */
    uint32_t fast_bytes;         /* memory for region 2 of NPU calls; 0 where none needs it */
    uint32_t tensors_count;      /* rows of tensors */
    uint32_t tensors_at;         /* bytes to the first */
    uint32_t steps_count;        /* rows of steps */
    uint32_t steps_at;           /* bytes to the first */
    uint32_t npu_calls_count;    /* rows of npu_calls */
    uint32_t npu_calls_at;       /* bytes to the first */
    uint32_t kernel_calls_count; /* rows of kernel_calls */
    uint32_t kernel_calls_at;    /* bytes to the first */
    uint32_t states_count;       /* rows of states */
    uint32_t states_at;          /* bytes to the first */
    uint32_t kernels_count;      /* rows of kernels */
    uint32_t kernels_at;         /* bytes to the first */
    uint32_t pool_count;         /* rows of pool */
    uint32_t pool_at;            /* bytes to the first */
    uint32_t inputs;             /* pool: tensors that are given, one word each */
    uint32_t input_count;        /* inputs */
    uint32_t outputs;            /* pool: tensors that are taken, one word each */
    uint32_t output_count;       /* outputs */
    uint32_t constants_at;       /* bytes to weights and constants, which may lie apart */
    uint32_t program;            /* CRC-32 of all before them, this word 0: what they are for */
} mz_header_row;
typedef char mz_header_row_size[sizeof(mz_header_row) == 108 ? 1 : -1];

/* The first bytes of a file that lies apart from the firmware. */
typedef struct {
    uint32_t magic; /* MZF1 */
    uint32_t bytes; /* of the file */
    uint32_t of;    /* what its contents are for: header.program, or MODEL_INTERFACE */
    uint32_t crc;   /* CRC-32 of these words before, and of the contents after */
} mz_file_row;
typedef char mz_file_row_size[sizeof(mz_file_row) == 16 ? 1 : -1];

/* A tensor, densely packed. */
typedef struct {
    uint32_t place;       /* an mz_place */
    uint32_t at;          /* bytes from the start of that */
    uint32_t bytes;       /* of all elements */
    uint32_t type;        /* an mz_element_type */
    uint32_t rank;        /* number of extents */
    uint32_t extents;     /* pool: one word each */
    uint32_t scale_count; /* 0 of plain numbers, 1, or the extent of the axis */
    uint32_t scales;      /* pool: so many float32, then so many zero points */
    uint32_t axis;        /* of scales */
} mz_tensor_row;
typedef char mz_tensor_row_size[sizeof(mz_tensor_row) == 36 ? 1 : -1];

/* What is executed, in order. */
typedef struct {
    uint32_t kind;  /* an mz_step_kind */
    uint32_t index; /* of the NPU call or kernel call */
} mz_step_row;
typedef char mz_step_row_size[sizeof(mz_step_row) == 8 ? 1 : -1];

/* One invocation of the NPU's driver. */
typedef struct {
    uint32_t payload_at;       /* bytes to the payload */
    uint32_t payload_bytes;    /* of the payload */
    uint32_t weights_at;       /* bytes to region 0 */
    uint32_t weights_bytes;    /* of region 0 */
    uint32_t scratch_at;       /* bytes from the arena's start to region 1 */
    uint32_t scratch_bytes;    /* of region 1 */
    uint32_t fast_bytes;       /* of region 2; 0 where that is region 1 */
    uint32_t copies_in;        /* pool: tensor and bytes from the start of region 1, before the call */
    uint32_t copies_in_count;  /* pairs */
    uint32_t copies_out;       /* pool: the same, after the call */
    uint32_t copies_out_count; /* pairs */
} mz_npu_call_row;
typedef char mz_npu_call_row_size[sizeof(mz_npu_call_row) == 44 ? 1 : -1];

/* One call of a kernel. */
typedef struct {
    uint32_t kernel;         /* index of its row of kernels */
    uint32_t arguments;      /* pool: rows of argument */
    uint32_t argument_count; /* arguments */
    uint32_t outputs;        /* pool: tensors that are written, or MZ_NONE */
    uint32_t output_count;   /* outputs */
} mz_kernel_call_row;
typedef char mz_kernel_call_row_size[sizeof(mz_kernel_call_row) == 20 ? 1 : -1];

/* An argument of a kernel call, in the pool. */
typedef struct {
    uint32_t kind; /* an mz_argument_kind */
    uint32_t low;  /* TENSOR: index or MZ_NONE; NUMBER: bits 31 to 0; NUMBERS: pool, two words each */
    uint32_t high; /* NUMBER: bits 63 to 32, or of a float32 the same as low; NUMBERS: how many */
} mz_argument_row;
typedef char mz_argument_row_size[sizeof(mz_argument_row) == 12 ? 1 : -1];

/* A tensor that outlives an inference. */
typedef struct {
    uint32_t read;       /* tensor that the next inference reads */
    uint32_t write;      /* tensor that it takes over from, after the last step */
    uint32_t initial_at; /* bytes to the contents before the first inference */
} mz_state_row;
typedef char mz_state_row_size[sizeof(mz_state_row) == 12 ? 1 : -1];

/* A kernel that calls need. */
typedef struct {
    uint32_t id; /* mz_kernel.id: FNV-1a of its name */
} mz_kernel_row;
typedef char mz_kernel_row_size[sizeof(mz_kernel_row) == 4 ? 1 : -1];

#endif
