/* Sigmoid or hyperbolic tangent of 16 bits. Arguments: input, 256 values of the sigmoid at steps of
 * 1/24 in 16 fractional bits, multiplier and shift to the right to 3 4096ths of a step, whether the
 * tangent is wanted.
 *
 * Ref: TFLite, reference_integer_ops: Logistic and Tanh of int16. */
#include "elements.h"

mz_status mz_kernel_squash(const mz_call *call);

typedef struct {
    const uint16_t *table;
    int32_t multiplier;
    int32_t shift;
    int32_t is_tangent;
} squashing;

/* The sigmoid of a magnitude in 16 + `bits` fractional bits, between two of the table. */
static int64_t between(const squashing *how, uint32_t magnitude, int32_t bits)
{
    const uint32_t place = magnitude >> bits;
    const uint32_t rest = magnitude - (place << bits);
    uint32_t low;
    if (place >= 255u) {
        return how->is_tangent != 0 ? (int64_t)0xffff << bits : (int64_t)0x7fff << 10;
    }
    low = how->table[place];
    return ((int64_t)low << bits) + (int64_t)rest * (how->table[place + 1u] - low);
}

static int64_t squashed(const squashing *how, int32_t value)
{
    const int64_t round = how->shift > 0 ? (int64_t)1 << (how->shift - 1) : 0;
    const int64_t scaled = ((int64_t)value * how->multiplier + round) >> how->shift;
    const uint32_t magnitude = (uint32_t)(scaled < 0 ? -scaled : scaled);
    if (how->is_tangent != 0) {
        const int64_t found = between(how, magnitude, 8) - ((int64_t)1 << 23);
        return (scaled >= 0 ? found + 128 : 127 - found) >> 8;
    }
    if (scaled >= 0) {
        return (between(how, magnitude, 9) + 512) >> 10;
    }
    return (((int64_t)1 << 25) - between(how, magnitude, 9) + 511) >> 10;
}

mz_status mz_kernel_squash(const mz_call *call)
{
    mz_tensor input;
    mz_tensor table;
    mz_tensor output;
    squashing how;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_take_tensor(call, 1, &table));
    MZ_TRY(mz_take_int(call, 2, &how.multiplier));
    MZ_TRY(mz_take_int(call, 3, &how.shift));
    MZ_TRY(mz_take_int(call, 4, &how.is_tangent));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(input.type == (uint32_t)MZ_ELEMENT_TYPE_INT16 && output.type == input.type);
    MZ_TAKES(table.type == (uint32_t)MZ_ELEMENT_TYPE_UINT16 && table.count == 256u);
    MZ_TAKES(input.count == output.count && how.shift >= 0 && how.shift <= 31);
    MZ_TAKES(how.multiplier >= 0 && how.multiplier <= INT16_MAX);
    how.table = table.data;
    for (i = 0; call->checking == 0 && i < input.count; i++) {
        const int32_t value = ((const int16_t *)input.data)[i];
        mz_put_integer(&output, i, squashed(&how, value));
    }
    return MZ_OK;
}
