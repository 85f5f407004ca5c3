/* Softmax of bytes in fixed point, to 8 or 16 bits. Arguments: input, length, inner, multiplier and shift of a
 * difference, the least difference that counts.
 *
 * Ref: TFLite, reference_ops::Softmax; gemmlowp, fixedpoint.h (exp_on_negative_values,
 * one_over_one_plus_x_for_x_in_0_1). The numbers of fractional bits are theirs. */
#include "elements.h"
#include "fixed_point.h"
#include "rows.h"

#define DIFFERENCE_BITS 26 /* of a difference: 5 bits before the point */
#define SUM_BITS 19        /* of the sum: 12 bits before the point */

mz_status mz_kernel_softmax_int8(const mz_call *call);

typedef struct {
    int32_t multiplier;
    int32_t shift;
    int32_t least;
} scaling;

/* Half the sum of two fractions, half away from zero. */
static int32_t half_sum(int32_t a, int32_t b)
{
    const int64_t sum = (int64_t)a + b;
    return (int32_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
}

/* e^a for -1/4 <= a < 0, of 31 fractional bits: the series about -1/8. */
static int32_t exponential_of_quarter(int32_t a)
{
    const int32_t constant = 1895147668; /* e^(-1/8) */
    const int32_t third = 715827883;
    const int32_t x = a + (1 << 28);
    const int32_t x2 = mz_doubled_high(x, x);
    const int32_t x3 = mz_doubled_high(x2, x);
    const int32_t x4 = mz_doubled_high(x2, x2);
    const int32_t quarter_x4 = mz_shift_right(x4, 2);
    const int32_t sum = mz_doubled_high(quarter_x4 + x3, third) + x2;
    return constant + mz_doubled_high(constant, x + mz_shift_right(sum, 1));
}

/* e^a for a <= 0 with 5 bits before the point: factors e^(-1/4), e^(-1/2), ... e^(-16) of the bits
 * of what is beyond a quarter. */
static int32_t exponential(int32_t a)
{
    static const int32_t factors[] = {1672461947, 1302514674, 790015084, 290630308,
                                      39332535,   720401,     242};
    const int32_t quarter = 1 << (DIFFERENCE_BITS - 2);
    const int32_t fraction = (int32_t)((uint32_t)a & (uint32_t)(quarter - 1)) - quarter;
    const int32_t beyond = fraction - a;
    int32_t found = exponential_of_quarter(mz_saturated_left(fraction, 5));
    uint32_t i;
    if (a == 0) {
        return INT32_MAX;
    }
    for (i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        if (((uint32_t)beyond & ((uint32_t)quarter << i)) != 0u) {
            found = mz_doubled_high(found, factors[i]);
        }
    }
    return found;
}

/* 1 / (1 + a) for 0 <= a < 1, of 31 fractional bits: three steps of Newton's. */
static int32_t inverse_of_one_and(int32_t a)
{
    const int32_t half = half_sum(a, INT32_MAX);
    const int32_t c48_over_17 = 1515870810;      /* of 29 fractional bits */
    const int32_t c_minus_32_over_17 = -1010580540;
    int32_t x = c48_over_17 + mz_doubled_high(half, c_minus_32_over_17);
    int32_t i;
    for (i = 0; i < 3; i++) {
        const int32_t product = mz_doubled_high(half, x);
        const int32_t rest = (1 << 29) - product;
        x += mz_saturated_left(mz_doubled_high(x, rest), 2);
    }
    return mz_saturated_left(x, 1);
}

static int32_t scaled_power(const scaling *scale, int32_t difference)
{
    const int32_t shifted = mz_shift_left(difference, scale->shift);
    return exponential(mz_doubled_high(shifted, scale->multiplier));
}

static void softmax(const mz_tensor *input, const mz_rows *rows, uint32_t start,
                    const scaling *scale, const mz_tensor *output)
{
    const int8_t *from = (const int8_t *)input->data + start;
    const int32_t width = 8 * (int32_t)mz_element_bytes(output->type);
    const int32_t low = -(1 << (width - 1));
    int32_t most = INT8_MIN;
    int32_t sum = 0;
    int32_t zeros;
    int32_t inverse;
    uint32_t i;
    for (i = 0; i < rows->length; i++) {
        most = from[i * rows->inner] > most ? from[i * rows->inner] : most;
    }
    for (i = 0; i < rows->length; i++) {
        const int32_t difference = from[i * rows->inner] - most;
        if (difference >= scale->least) {
            sum += mz_shift_right(scaled_power(scale, difference), 31 - SUM_BITS);
        }
    }
    zeros = mz_leading_zeros((uint32_t)sum);
    inverse = inverse_of_one_and((int32_t)(((uint32_t)sum << zeros) - 0x80000000u));
    for (i = 0; i < rows->length; i++) {
        const int32_t difference = from[i * rows->inner] - most;
        int32_t found = low;
        if (difference >= scale->least) {
            const int32_t bits = 12 - zeros + 31 - width;
            found += mz_shift_right(mz_doubled_high(inverse, scaled_power(scale, difference)), bits);
        }
        mz_put_integer(output, start + i * rows->inner, found >= -low ? -low - 1 : found);
    }
}

mz_status mz_kernel_softmax_int8(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    mz_rows rows;
    scaling scale;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_rows_take(call, 1, &input, &rows));
    MZ_TRY(mz_take_int(call, 3, &scale.multiplier));
    MZ_TRY(mz_take_int(call, 4, &scale.shift));
    MZ_TRY(mz_take_int(call, 5, &scale.least));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(input.type == (uint32_t)MZ_ELEMENT_TYPE_INT8);
    MZ_TAKES(output.type == input.type || output.type == (uint32_t)MZ_ELEMENT_TYPE_INT16);
    MZ_TAKES(output.count == input.count && output.data != input.data);
    MZ_TAKES(scale.multiplier > 0 && scale.shift >= 0 && scale.shift <= 31);
    MZ_TAKES(rows.length < 4096u && scale.least <= 0 && scale.least >= -255);
    for (i = 0; call->checking == 0 && i < rows.count; i++) {
        softmax(&input, &rows, mz_row_start(&rows, i), &scale, &output);
    }
    return MZ_OK;
}
