/* Rows of a length of 1. Arguments: input, elements of a row, the input's zero point. Bytes come out
 * with 7 fractional bits.
 *
 * Ref: TFLite, reference_ops and reference_integer_ops: L2Normalization; common.h,
 * GetInvSqrtQuantizedMultiplierExp (Newton's steps, and how numbers are scaled between them). */
#include "elements.h"
#include "fixed_point.h"
#include "functions.h"

#define LEAST_LENGTH 1e-6f
#define FRACTION_BITS 7
#define LARGEST_SQUARE (1 << 29)

mz_status mz_kernel_unit_length(const mz_call *call);

typedef struct {
    int32_t multiplier;
    int32_t shift;
} factor;

/* 1 / sqrt(x) for 1/2 <= x < 2, times sqrt(1/2); all have 3 bits before the point. */
static int32_t inverse_root(int32_t square)
{
    const int32_t three_halves = (1 << 28) + (1 << 27);
    const int32_t half_of_root_2 = 1518500250;
    const int32_t half = mz_shift_right(square, 1);
    int32_t x = 1 << 28;
    int32_t i;
    for (i = 0; i < 5; i++) {
        const int32_t cube = mz_saturated_left(mz_doubled_high(mz_doubled_high(x, x), x), 6);
        x = mz_saturated_left(mz_low_word((int64_t)mz_doubled_high(three_halves, x) -
                                       mz_doubled_high(half, cube)),
                           3);
    }
    return mz_doubled_high(x, half_of_root_2);
}

static factor inverse_length(int32_t square)
{
    factor found = {INT32_MAX, 0};
    int32_t shift = 11;
    if (square <= 1) {
        return found;
    }
    while (square >= LARGEST_SQUARE) {
        square /= 4;
        shift++;
    }
    while (square < LARGEST_SQUARE / 4) {
        square *= 4;
        shift--;
    }
    found.multiplier = inverse_root(square >> 1);
    if (shift < 0) {
        found.multiplier = mz_shift_left(found.multiplier, -shift);
        shift = 0;
    }
    found.shift = -shift;
    return found;
}

static void scale_bytes(const int8_t *from, int8_t *to, uint32_t length, int32_t point)
{
    uint32_t square = 0;
    factor by;
    uint32_t i;
    for (i = 0; i < length; i++) {
        const int32_t value = from[i] - point;
        square += (uint32_t)(value * value);
    }
    by = inverse_length(mz_low_word((int64_t)square));
    for (i = 0; i < length; i++) {
        const int32_t found = mz_scale(from[i] - point, by.multiplier, by.shift + FRACTION_BITS);
        const int32_t limited = found < INT8_MIN ? INT8_MIN : found;
        to[i] = (int8_t)(limited > INT8_MAX ? INT8_MAX : limited);
    }
}

static void scale_reals(const float *from, float *to, uint32_t length)
{
    float square = 0.0f;
    float size;
    uint32_t i;
    for (i = 0; i < length; i++) {
        square += from[i] * from[i];
    }
    size = mz_square_root(square);
    size = size < LEAST_LENGTH ? LEAST_LENGTH : size;
    for (i = 0; i < length; i++) {
        to[i] = from[i] / size;
    }
}

mz_status mz_kernel_unit_length(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    int32_t length;
    int32_t point;
    uint32_t at;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_take_int(call, 1, &length));
    MZ_TRY(mz_take_int(call, 2, &point));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(input.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT32 ||
             input.type == (uint32_t)MZ_ELEMENT_TYPE_INT8);
    MZ_TAKES(output.type == input.type && output.count == input.count);
    MZ_TAKES(length > 0 && input.count % (uint32_t)length == 0u);
    MZ_TAKES(point >= INT8_MIN && point <= INT8_MAX);
    for (at = 0; call->checking == 0 && at < input.count; at += (uint32_t)length) {
        if (mz_is_integer(input.type) != 0) {
            scale_bytes((const int8_t *)input.data + at, (int8_t *)output.data + at,
                        (uint32_t)length, point);
        } else {
            scale_reals((const float *)input.data + at, (float *)output.data + at,
                        (uint32_t)length);
        }
    }
    return MZ_OK;
}
