#include "fixed_point.h"

int32_t mz_doubled_high(int32_t a, int32_t b)
{
    const int64_t product = (int64_t)a * b;
    const int64_t half = product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30);
    if (a == b && a == INT32_MIN) {
        return INT32_MAX;
    }
    return (int32_t)((product + half) / ((int64_t)1 << 31));
}

/* Of a negative number the shift leaves the floor, so that more than half must remain. */
int32_t mz_shift_right(int32_t value, int32_t bits)
{
    const int64_t unit = (int64_t)1 << bits;
    const int64_t wide = value;
    int64_t whole = wide / unit;
    const int64_t rest = wide - whole * unit;
    if (2 * rest >= unit && bits > 0) {
        whole++;
    }
    if (2 * rest <= -unit && bits > 0) {
        whole--;
    }
    return (int32_t)whole;
}

int32_t mz_low_word(int64_t value)
{
    const uint32_t bits = (uint32_t)((uint64_t)value & UINT32_MAX);
    return bits > (uint32_t)INT32_MAX ? -(int32_t)(UINT32_MAX - bits) - 1 : (int32_t)bits;
}

int32_t mz_shift_left(int32_t value, int32_t bits)
{
    return mz_low_word((int64_t)((uint64_t)(int64_t)value << bits));
}

int32_t mz_saturated_left(int32_t value, int32_t bits)
{
    const int64_t shifted = (int64_t)value * ((int64_t)1 << bits);
    if (shifted > INT32_MAX) {
        return INT32_MAX;
    }
    return shifted < INT32_MIN ? INT32_MIN : (int32_t)shifted;
}

int32_t mz_leading_zeros(uint32_t value)
{
    int32_t count = 0;
    while (count < 32 && (value & 0x80000000u) == 0u) {
        value <<= 1;
        count++;
    }
    return count;
}

int32_t mz_scale(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = shift > 0 ? 0 : -shift;
    return mz_shift_right(mz_doubled_high(mz_shift_left(value, left), multiplier), right);
}

int32_t mz_scale_wide(int64_t value, int32_t multiplier, int32_t shift)
{
    const int32_t upper = multiplier < 0x7fff0000 ? (multiplier + (1 << 15)) >> 16 : 0x7fff;
    const int32_t bits = 15 - shift;
    const uint64_t product = (uint64_t)value * (uint64_t)(int64_t)upper;
    return mz_low_word((int64_t)(product + ((uint64_t)1 << (bits - 1))) >> bits);
}
