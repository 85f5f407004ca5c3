#include "functions.h"

#include <stdint.h>

#include "mizzen_memory.h"

#define LN_2 0.693147180559945309417
#define MANY 134217728.0f
#define RIGHT_ANGLE 1.57079632679489661923
#define RIGHT_ANGLE_HIGH 1.57079632673412561417
#define RIGHT_ANGLE_LOW 6.07710050650619224932e-11
#define TWO_OVER_ROOT_PI 1.12837916709551257390
#define WHOLE_FROM 8388608.0f /* every float32 from here on is whole */

static float infinity(void)
{
    const uint32_t bits = 0x7f800000u;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double power_of_two(int32_t exponent)
{
    const uint64_t bits = (uint64_t)(uint32_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* e^x for -110 < x < 110: x is n ln 2 + r, and the series of e^r ends where float32 does. */
static double exponential(double x)
{
    const int32_t n = (int32_t)(x / LN_2 + (x < 0.0 ? -0.5 : 0.5));
    const double r = x - (double)n * LN_2;
    double sum = 1.0;
    int32_t k;
    for (k = 12; k > 0; k--) {
        sum = 1.0 + sum * r / (double)k;
    }
    return sum * power_of_two(n);
}

float mz_exponential(float value)
{
    if (value != value) {
        return value;
    }
    if (value > 89.0f) {
        return infinity();
    }
    return value < -104.0f ? 0.0f : (float)exponential((double)value);
}

/* ln(m 2^e) with m between sqrt(1/2) and sqrt(2), by the series of artanh((m - 1) / (m + 1)). */
static double logarithm(double value)
{
    uint64_t bits;
    int32_t exponent;
    double mantissa;
    double s;
    double sum = 0.0;
    int32_t k;
    memcpy(&bits, &value, sizeof bits);
    exponent = (int32_t)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | (uint64_t)1023 << 52;
    memcpy(&mantissa, &bits, sizeof mantissa);
    if (mantissa > 1.4142135623730951) {
        mantissa *= 0.5;
        exponent++;
    }
    s = (mantissa - 1.0) / (mantissa + 1.0);
    for (k = 19; k > 0; k -= 2) {
        sum = sum * s * s + 1.0 / (double)k;
    }
    return 2.0 * s * sum + (double)exponent * LN_2;
}

float mz_logarithm(float value)
{
    if (value == 0.0f) {
        return -infinity();
    }
    if (!(value > 0.0f)) {
        return infinity() - infinity();
    }
    return value == infinity() ? value : (float)logarithm((double)value);
}

/* Close to 0 the difference of exponentials loses what the series keeps. */
float mz_tanh(float value)
{
    const double x = (double)value;
    double power;
    if (value != value) {
        return value;
    }
    if (x > 10.0 || x < -10.0) {
        return x > 0.0 ? 1.0f : -1.0f;
    }
    if (x < 0.01 && x > -0.01) {
        const double square = x * x;
        return (float)(x * (1.0 - square * (1.0 / 3.0 - square * 2.0 / 15.0)));
    }
    power = exponential(2.0 * x);
    return (float)((power - 1.0) / (power + 1.0));
}

float mz_sigmoid(float value)
{
    if (value != value) {
        return value;
    }
    if (value < -104.0f) {
        return 0.0f;
    }
    return value > 89.0f ? 1.0f : (float)(1.0 / (1.0 + exponential(-(double)value)));
}

/* Newton's steps in double from a first guess of half the exponent. */
static double square_root(double value)
{
    uint64_t bits;
    double root;
    int32_t i;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits >> 1) + ((uint64_t)1023 << 51);
    memcpy(&root, &bits, sizeof root);
    for (i = 0; i < 5; i++) {
        root = 0.5 * (root + value / root);
    }
    return root;
}

float mz_square_root(float value)
{
    if (value < 0.0f) {
        return infinity() - infinity();
    }
    return !(value > 0.0f) || value == infinity() ? value : (float)square_root((double)value);
}

float mz_inverse_square_root(float value)
{
    if (value < 0.0f) {
        return infinity() - infinity();
    }
    if (value != value) {
        return value;
    }
    if (value == infinity()) {
        return 0.0f;
    }
    return value == 0.0f ? 1.0f / value : (float)(1.0 / square_root((double)value));
}

double mz_inverse_root(double value)
{
    return 1.0 / square_root(value);
}

/* The series of e^(x^2) erf(x), all of whose terms have one sign. */
float mz_error_function(float value)
{
    const double x = (double)value;
    double term = x;
    double sum = x;
    int32_t k;
    if (value != value) {
        return value;
    }
    if (value > 4.0f || value < -4.0f) {
        return value > 0.0f ? 1.0f : -1.0f;
    }
    for (k = 1; k < 100; k++) {
        term *= 2.0 * x * x / (2.0 * (double)k + 1.0);
        sum += term;
    }
    return value == 0.0f ? value : (float)(TWO_OVER_ROOT_PI * sum * exponential(-x * x));
}

/* Close to 0 the difference loses what the series keeps. */
float mz_exponential_less_one(float value)
{
    const double x = (double)value;
    if (value != value || value == 0.0f) {
        return value;
    }
    if (value > 89.0f) {
        return infinity();
    }
    if (value < -104.0f) {
        return -1.0f;
    }
    if (value > -1e-3f && value < 1e-3f) {
        return (float)(x * (1.0 + x * (0.5 + x / 6.0)));
    }
    return (float)(exponential(x) - 1.0);
}

float mz_logarithm_of_one_and(float value)
{
    const double x = (double)value;
    if (value != value || value == 0.0f || value == infinity()) {
        return value;
    }
    if (value <= -1.0f) {
        return value < -1.0f ? infinity() - infinity() : -infinity();
    }
    if (value > -1e-3f && value < 1e-3f) {
        return (float)(x * (1.0 - x * (0.5 - x / 3.0)));
    }
    return (float)logarithm(1.0 + x);
}

float mz_scaled_logarithm(float value, double factor)
{
    if (!(value > 0.0f) || value == infinity()) {
        return mz_logarithm(value);
    }
    return (float)(logarithm((double)value) * factor);
}

/* What is left of whole right angles. */
typedef struct {
    int64_t count;
    double rest;
} right_angles;

/* Right angles come in two parts, so that their multiples stay exact. */
static right_angles few_right_angles(double x)
{
    right_angles found;
    found.count = (int64_t)(x / RIGHT_ANGLE + (x < 0.0 ? -0.5 : 0.5));
    found.rest = (x - (double)found.count * RIGHT_ANGLE_HIGH) -
                 (double)found.count * RIGHT_ANGLE_LOW;
    return found;
}

/* Of a number above 2^27: it is m 2^e, and only those bits of 2 / pi matter that are worth less
 * than 4 right angles times 2^-e. */
static right_angles many_right_angles(float value)
{
    static const uint32_t two_over_pi[] = {0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                           0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u};
    right_angles found;
    uint32_t bits;
    uint32_t mantissa;
    uint32_t first;
    uint64_t window;
    uint64_t product;
    int64_t fraction;
    memcpy(&bits, &value, sizeof bits);
    mantissa = (bits & 0x7fffffu) | 0x800000u;
    first = ((bits >> 23) & 0xffu) - 150u;
    first = first > 1u ? first - 2u : 0u;
    window = (uint64_t)two_over_pi[first / 32u] << 32 | two_over_pi[first / 32u + 1u];
    if (first % 32u != 0u) {
        window = window << first % 32u | two_over_pi[first / 32u + 2u] >> (32u - first % 32u);
    }
    product = window * mantissa;
    found.count = (int64_t)(product >> 62);
    fraction = (int64_t)(product & (((uint64_t)1 << 62) - 1u));
    if (fraction >= (int64_t)1 << 61) {
        found.count++;
        fraction -= (int64_t)1 << 62;
    }
    found.rest = (double)fraction * RIGHT_ANGLE / 4611686018427387904.0;
    if (value < 0.0f) {
        found.count = -found.count;
        found.rest = -found.rest;
    }
    return found;
}

/* The sine of `quarters` right angles more, by the series about 0. */
static float sine(float value, int64_t quarters)
{
    right_angles found;
    double square;
    double term = 1.0;
    double sum = 0.0;
    int32_t k;
    if (value - value != 0.0f) {
        return value - value;
    }
    found = value > MANY || value < -MANY ? many_right_angles(value)
                                          : few_right_angles((double)value);
    found.count += quarters;
    square = found.rest * found.rest;
    for (k = (found.count & 1) != 0 ? 1 : 2; k < 20; k += 2) {
        sum += term;
        term *= -square / ((double)k * (double)(k + 1));
    }
    sum *= (found.count & 1) != 0 ? 1.0 : found.rest;
    return (float)((found.count & 2) != 0 ? -sum : sum);
}

float mz_sine(float value)
{
    return value == 0.0f ? value : sine(value, 0);
}

float mz_cosine(float value)
{
    return sine(value, 1);
}

static int is_whole(float value)
{
    return !(value > -WHOLE_FROM && value < WHOLE_FROM);
}

/* What is cut to nothing keeps its sign. */
static float cut(float value)
{
    const float found = (float)(int32_t)value;
    return found == 0.0f ? 0.0f * value : found;
}

float mz_truncate(float value)
{
    return is_whole(value) ? value : cut(value);
}

float mz_floor(float value)
{
    float found;
    if (is_whole(value)) {
        return value;
    }
    found = cut(value);
    return found > value ? found - 1.0f : found;
}

float mz_ceiling(float value)
{
    float found;
    if (is_whole(value)) {
        return value;
    }
    found = cut(value);
    if (found < value) {
        found += 1.0f;
    }
    return found == 0.0f ? 0.0f * value : found;
}

float mz_round(float value)
{
    float found;
    float rest;
    if (is_whole(value)) {
        return value;
    }
    found = cut(value);
    rest = value - found;
    if (rest > 0.5f || (rest == 0.5f && (int32_t)found % 2 != 0)) {
        return found + 1.0f;
    }
    if (rest < -0.5f || (rest == -0.5f && (int32_t)found % 2 != 0)) {
        return found - 1.0f;
    }
    return found;
}
