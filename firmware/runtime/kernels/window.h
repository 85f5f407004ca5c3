/* Windows that go over images: convolutions, their transposes, pools, products of matrices. */
#ifndef MIZZEN_WINDOW_H
#define MIZZEN_WINDOW_H

#include "mizzen_kernel.h"

/* Along an axis tap t of output o is at (o stride + t dilation - pad) / up in the input, if that is
 * whole and there. */
typedef struct {
    int32_t output;
    int32_t taps;
    int32_t input;
    int32_t stride;
    int32_t dilation;
    int32_t pad;
    int32_t up;
} mz_span;

/* Strides are of batches, rows, columns and channels. */
typedef struct {
    int32_t batches;
    int32_t channels;
    int32_t input_channels;
    mz_span rows;
    mz_span columns;
    int32_t input[4];
    int32_t output[4];
} mz_window;

/* Read the numbers of a window, in the order above: each output must be an element of `output`,
 * once, and what it is made of an element of `input`. */
mz_status mz_window_take(const mz_call *call, uint32_t place, const mz_tensor *input,
                         const mz_tensor *output, mz_window *window);

/* The first tap of an output that may be in the input, and the one behind the last. */
int32_t mz_span_start(const mz_span *span, int32_t output);
int32_t mz_span_end(const mz_span *span, int32_t output);

/* Where a tap is in the input, or -1. */
int32_t mz_span_at(const mz_span *span, int32_t output, int32_t tap);

/* Whether all that non-negative strides reach is among `count` elements; extents are from 1 on. */
int mz_reaches(const int32_t extents[], const int32_t strides[], uint32_t axes, uint32_t count);

/* Call `compute` for each output, with its place, and where its batch starts in the input. */
typedef struct {
    int32_t row;
    int32_t column;
    int32_t channel;
    uint32_t batch;
    uint32_t place;
} mz_output_at;

typedef void mz_window_compute(const void *what, const mz_window *window, const mz_output_at *at);

void mz_window_walk(const mz_window *window, mz_window_compute *compute, const void *what);

#endif
