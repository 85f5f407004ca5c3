/* Multiplication of integers by real factors, as TFLite rounds it: a factor is a multiplier of 31
 * fractional bits and a power of two. */
#ifndef MIZZEN_FIXED_POINT_H
#define MIZZEN_FIXED_POINT_H

#include <stdint.h>

/* High half of twice the product, half away from zero; saturates (gemmlowp). */
int32_t mz_doubled_high(int32_t a, int32_t b);

/* Division by a power of two from 0 to 31, half away from zero (gemmlowp). */
int32_t mz_shift_right(int32_t value, int32_t bits);

/* The lower 32 bits: what an integer of 32 bits that overflows has. */
int32_t mz_low_word(int64_t value);

/* Shift to the left by up to 31 bits, wrapping. */
int32_t mz_shift_left(int32_t value, int32_t bits);

/* Shift to the left by up to 31 bits; what does not fit ends at the limits. */
int32_t mz_saturated_left(int32_t value, int32_t bits);

int32_t mz_leading_zeros(uint32_t value);

/* value times multiplier times 2^(shift - 31); rounds twice where shift is negative. */
int32_t mz_scale(int32_t value, int32_t multiplier, int32_t shift);

/* The same of a sum of 64 bits, half up, by the upper 16 bits of the multiplier; shift is from -31
 * to 14. What does not fit 32 bits is cut. */
int32_t mz_scale_wide(int64_t value, int32_t multiplier, int32_t shift);

#endif
