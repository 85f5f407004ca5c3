/* Rows of a tensor along an axis: `[outer, length, inner]`. */
#ifndef MIZZEN_ROWS_H
#define MIZZEN_ROWS_H

#include "mizzen_kernel.h"

typedef struct {
    uint32_t length;
    uint32_t inner;
    uint32_t count; /* outer times inner: the rows */
} mz_rows;

/* Read length and inner from arguments; the tensor must be whole rows of at least one element. */
mz_status mz_rows_take(const mz_call *call, uint32_t place, const mz_tensor *tensor, mz_rows *rows);

/* The first element of a row; the next are `inner` further on each. */
uint32_t mz_row_start(const mz_rows *rows, uint32_t row);

#endif
