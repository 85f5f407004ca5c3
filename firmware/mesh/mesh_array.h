/* The element's accelerator: sums of products, one output element after the other.
 *
 * mesh_array.c does it in plain C. An owner puts functions for the hardware beside it and leaves
 * that file out; whatever order they compute in, each output element is finished once. */
#ifndef MESH_ARRAY_H
#define MESH_ARRAY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Signed integers of `item_bytes` (1 or 2; 4 in products of matrices): a feature map of
 * [batch, height, width, channels], or matrices [batch, height, width] with one channel. */
typedef struct {
    const uint8_t *data;
    uint32_t item_bytes;
    uint32_t extents[4];
    uint32_t strides[4]; /* bytes from one to the next */
    int32_t zero_point;
} mesh_operand;

/* A convolution. What lies outside the input counts as its zero point.
 *
 * weights  [output channels, kernel height, kernel width, input channels], or where each channel
 *          has a filter of its own (`multiplier` > 0) [kernel height, kernel width, input channels,
 *          multiplier]; output channel c is then that of input channel c / multiplier
 * pairs    (height, width) */
typedef struct {
    mesh_operand input;
    const int8_t *weights;
    int32_t weight_zero_point;
    uint32_t multiplier;
    uint32_t kernel[2];
    uint32_t stride[2];
    uint32_t dilation[2];
    uint32_t padding[2]; /* before the first row and column */
    uint32_t output[4];
} mesh_convolution;

/* Take the sum of an output element, at [batch, height, width, channel]. The one function that is
 * generated for each layer: it adds the bias, scales, and stores what the network stores. */
typedef void (*mesh_finish)(uint8_t *const *boxes, const uint32_t *at, int64_t sum);

/* The sum over the kernel of input * (weight - weight zero point), the input as it is: its zero
 * point and the bias are the caller's to take into account, in 32 bits. The sum is held in an
 * accumulator of MESH_ACCUMULATOR_BITS (mesh_machine.h), which wraps, or saturates at the end. */
void mesh_array_convolution(const mesh_convolution *convolution, mesh_finish finish,
                            uint8_t *const *boxes);

/* Matrices [n, rows, depth] and [n, depth, columns]: the sum over the depth of the products, each
 * factor less its zero point. `at` is [n, row, column, 0]. */
void mesh_array_product(const mesh_operand *left, const mesh_operand *right, mesh_finish finish,
                        uint8_t *const *boxes);

#ifdef __cplusplus
}
#endif

#endif
