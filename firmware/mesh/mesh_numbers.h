/* Integers as TOSA 1.0 computes them, element by element. */
#ifndef MESH_NUMBERS_H
#define MESH_NUMBERS_H

#include <stdint.h>
#include <string.h>

/* Little-endian integers in memory, wherever they lie. */
static inline int64_t mesh_load(const uint8_t *data, uint32_t bytes)
{
    int8_t byte;
    int16_t half;
    int32_t word;
    int64_t wide;
    switch (bytes) {
    case 1u:
        memcpy(&byte, data, 1u);
        return byte;
    case 2u:
        memcpy(&half, data, 2u);
        return half;
    case 4u:
        memcpy(&word, data, 4u);
        return word;
    default:
        memcpy(&wide, data, 8u);
        return wide;
    }
}

static inline void mesh_store(uint8_t *data, uint32_t bytes, int64_t value)
{
    memcpy(data, &value, bytes);
}

/* The integer of so many bits, less than 64, that the low ones are. */
static inline int64_t mesh_wrap(int64_t value, uint32_t bits)
{
    const uint64_t half = (uint64_t)1 << (bits - 1u);
    return (int64_t)(((uint64_t)value + half) & (2u * half - 1u)) - (int64_t)half;
}

/* The same without a sign. */
static inline int64_t mesh_unsigned(int64_t value, uint32_t bits)
{
    return (int64_t)((uint64_t)value & (((uint64_t)1 << bits) - 1u));
}

static inline int64_t mesh_clamp(int64_t value, int64_t least, int64_t greatest)
{
    if (value < least) {
        return least;
    }
    return value > greatest ? greatest : value;
}

static inline int64_t mesh_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t mesh_greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Division by a power of two, toward minus infinity. */
static inline int64_t mesh_floor_shift(int64_t value, uint32_t bits)
{
    return value >= 0 ? value >> bits : ~(~value >> bits);
}

/* RESCALE between zero points: value * multiplier / 2^shift, rounded to nearest, ties up. */
static inline int64_t mesh_rescale(int64_t value, int64_t multiplier, uint32_t shift)
{
    const int64_t rounding = (int64_t)1 << (shift - 1u);
    return mesh_floor_shift(value * multiplier + rounding, shift);
}

/* The same, rounded twice where the shift is greater than 31. */
static inline int64_t mesh_rescale_twice(int64_t value, int64_t multiplier, uint32_t shift)
{
    int64_t rounding = (int64_t)1 << (shift - 1u);
    if (shift > 31u) {
        rounding += value >= 0 ? (int64_t)1 << 30 : -((int64_t)1 << 30);
    }
    return mesh_floor_shift(value * multiplier + rounding, shift);
}

/* ARITHMETIC_RIGHT_SHIFT; `round` adds the last bit that went. */
static inline int64_t mesh_shift_right(int64_t value, int64_t bits, int64_t round)
{
    const int64_t whole = mesh_floor_shift(value, (uint32_t)bits);
    if (round == 0 || bits == 0) {
        return whole;
    }
    return whole + mesh_unsigned(mesh_floor_shift(value, (uint32_t)bits - 1u), 1u);
}

/* MUL: the low word, or with a shift to the nearest, ties up. */
static inline int64_t mesh_multiply(int64_t a, int64_t b, uint32_t shift)
{
    if (shift == 0u) {
        return mesh_wrap((int64_t)((uint64_t)a * (uint64_t)b), 32u);
    }
    return mesh_floor_shift(a * b + ((int64_t)1 << (shift - 1u)), shift);
}

/* CLZ of 32 bits. */
static inline int64_t mesh_leading_zeros(int64_t value)
{
    int64_t count = 32;
    uint32_t rest = (uint32_t)((uint64_t)value & UINT32_MAX);
    for (; rest != 0u; rest >>= 1) {
        count--;
    }
    return count;
}

/* The average of AVG_POOL2D: by a reciprocal of 31 bits, rounded once (TOSA 1.0, 4.3.3). */
static inline int64_t mesh_average(int64_t sum, uint32_t count)
{
    uint32_t bits = 0;
    int64_t multiplier;
    while (((uint32_t)1 << bits) < count) {
        bits++;
    }
    multiplier = (((int64_t)1 << 30) + 1) * ((int64_t)1 << bits) / count;
    return mesh_rescale(sum, multiplier, 30u + bits);
}

#endif
