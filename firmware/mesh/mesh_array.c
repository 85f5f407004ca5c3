#include "mesh_array.h"

#include "mesh_machine.h"
#include "mesh_numbers.h"

static int64_t item(const mesh_operand *operand, const uint32_t *at)
{
    const uint8_t *data = operand->data;
    uint32_t axis;
    for (axis = 0; axis < 4u; axis++) {
        data += at[axis] * operand->strides[axis];
    }
    return mesh_load(data, operand->item_bytes);
}

/* What an accumulator keeps of a sum. */
static int64_t held(int64_t sum)
{
#if MESH_ACCUMULATOR_BITS < 32
    const int64_t half = (int64_t)1 << (MESH_ACCUMULATOR_BITS - 1);
#if MESH_ACCUMULATOR_SATURATES
    return mesh_clamp(sum, -half, half - 1);
#else
    const uint64_t mask = 2u * (uint64_t)half - 1u;
    return (int64_t)(((uint64_t)sum + (uint64_t)half) & mask) - half;
#endif
#else
    return sum;
#endif
}

/* The input at a place of the kernel: the zero point where that lies outside. */
static int64_t covered(const mesh_convolution *what, const uint32_t *at, uint32_t row,
                       uint32_t column, uint32_t channel)
{
    const uint32_t y = at[1] * what->stride[0] + row * what->dilation[0];
    const uint32_t x = at[2] * what->stride[1] + column * what->dilation[1];
    uint32_t place[4];
    if (y < what->padding[0] || y - what->padding[0] >= what->input.extents[1] ||
        x < what->padding[1] || x - what->padding[1] >= what->input.extents[2]) {
        return what->input.zero_point;
    }
    place[0] = at[0];
    place[1] = y - what->padding[0];
    place[2] = x - what->padding[1];
    place[3] = channel;
    return item(&what->input, place);
}

static int64_t sum_of_all_channels(const mesh_convolution *what, const uint32_t *at)
{
    const uint32_t depth = what->input.extents[3];
    const int8_t *weight = what->weights + at[3] * what->kernel[0] * what->kernel[1] * depth;
    int64_t sum = 0;
    uint32_t row, column, channel;
    for (row = 0; row < what->kernel[0]; row++) {
        for (column = 0; column < what->kernel[1]; column++) {
            for (channel = 0; channel < depth; channel++) {
                sum += covered(what, at, row, column, channel) *
                       (*weight++ - what->weight_zero_point);
            }
        }
    }
    return sum;
}

static int64_t sum_of_one_channel(const mesh_convolution *what, const uint32_t *at)
{
    const uint32_t step = what->output[3];
    const int8_t *weight = what->weights + at[3];
    int64_t sum = 0;
    uint32_t row, column;
    for (row = 0; row < what->kernel[0]; row++) {
        for (column = 0; column < what->kernel[1]; column++) {
            sum += covered(what, at, row, column, at[3] / what->multiplier) *
                   (*weight - what->weight_zero_point);
            weight += step;
        }
    }
    return sum;
}

void mesh_array_convolution(const mesh_convolution *what, mesh_finish finish, uint8_t *const *boxes)
{
    uint32_t at[4];
    for (at[0] = 0; at[0] < what->output[0]; at[0]++) {
        for (at[1] = 0; at[1] < what->output[1]; at[1]++) {
            for (at[2] = 0; at[2] < what->output[2]; at[2]++) {
                for (at[3] = 0; at[3] < what->output[3]; at[3]++) {
                    const int64_t sum = what->multiplier != 0u ? sum_of_one_channel(what, at)
                                                               : sum_of_all_channels(what, at);
                    finish(boxes, at, held(sum));
                }
            }
        }
    }
}

static int64_t product(const mesh_operand *left, const mesh_operand *right, const uint32_t *at)
{
    uint32_t one[4] = {0, 0, 0, 0};
    uint32_t other[4] = {0, 0, 0, 0};
    int64_t sum = 0;
    uint32_t depth;
    one[0] = at[0];
    one[1] = at[1];
    other[0] = at[0];
    other[2] = at[2];
    for (depth = 0; depth < left->extents[2]; depth++) {
        one[2] = depth;
        other[1] = depth;
        sum += (item(left, one) - left->zero_point) * (item(right, other) - right->zero_point);
    }
    return sum;
}

void mesh_array_product(const mesh_operand *left, const mesh_operand *right, mesh_finish finish,
                        uint8_t *const *boxes)
{
    uint32_t at[4] = {0, 0, 0, 0};
    for (at[0] = 0; at[0] < left->extents[0]; at[0]++) {
        for (at[1] = 0; at[1] < left->extents[1]; at[1]++) {
            for (at[2] = 0; at[2] < right->extents[2]; at[2]++) {
                finish(boxes, at, product(left, right, at));
            }
        }
    }
}
