/* What kernels are written with: the arguments and outputs of a call. */
#ifndef MIZZEN_KERNEL_H
#define MIZZEN_KERNEL_H

#include "mizzen.h"

#define MZ_TRY(expression)                       \
    do {                                         \
        const mz_status mz_tried = (expression); \
        if (mz_tried != MZ_OK) {                 \
            return mz_tried;                     \
        }                                        \
    } while (0)

/* A kernel takes a call only if this holds. */
#define MZ_TAKES(condition)            \
    do {                               \
        if (!(condition)) {            \
            return MZ_ERROR_ARGUMENT;  \
        }                              \
    } while (0)

/* 64-bit numbers of a list, low words first. */
typedef struct {
    const uint32_t *words;
    uint32_t count;
} mz_numbers;

void mz_tensor_at(const mz_context *context, uint32_t index, mz_tensor *tensor);

/* Find an argument or an output of a call. MZ_ERROR_ARGUMENT if it is not there, or of another
 * kind. */
mz_status mz_take_tensor(const mz_call *call, uint32_t place, mz_tensor *tensor);
mz_status mz_take_number(const mz_call *call, uint32_t place, int64_t *number);
mz_status mz_take_int(const mz_call *call, uint32_t place, int32_t *number);
mz_status mz_take_real(const mz_call *call, uint32_t place, float *number);
mz_status mz_take_numbers(const mz_call *call, uint32_t place, mz_numbers *numbers);
mz_status mz_give_tensor(const mz_call *call, uint32_t place, mz_tensor *tensor);

/* Whether an argument that is a tensor is there. */
int mz_has(const mz_call *call, uint32_t place);

int64_t mz_number_at(const mz_numbers *numbers, uint32_t place);

#endif
