/* Operators on sound: window, spectrum, filter bank, noise and gain, logarithm.
 *
 * Ref: TFLite Micro, signal/src (arithmetic and its roundings); KISS FFT in 16 bits (order of
 * butterflies, halving and quartering before each). */
#include "elements.h"
#include "mizzen_memory.h"

mz_status mz_kernel_signal_window(const mz_call *call);
mz_status mz_kernel_signal_scale(const mz_call *call);
mz_status mz_kernel_signal_spectrum(const mz_call *call);
mz_status mz_kernel_signal_energy(const mz_call *call);
mz_status mz_kernel_signal_bank(const mz_call *call);
mz_status mz_kernel_signal_root(const mz_call *call);
mz_status mz_kernel_signal_subtract(const mz_call *call);
mz_status mz_kernel_signal_gain(const mz_call *call);
mz_status mz_kernel_signal_logarithm(const mz_call *call);

#define LARGEST_FFT 8192

static mz_status take_typed(const mz_call *call, uint32_t place, uint32_t type, mz_tensor *tensor)
{
    MZ_TRY(mz_take_tensor(call, place, tensor));
    MZ_TAKES(tensor->type == type);
    return MZ_OK;
}

static mz_status give_typed(const mz_call *call, uint32_t place, uint32_t type, mz_tensor *tensor)
{
    MZ_TRY(mz_give_tensor(call, place, tensor));
    MZ_TAKES(tensor->type == type);
    return MZ_OK;
}

/* Bits of a number without leading zeros. */
static int32_t bits_of(uint32_t value)
{
    int32_t bits = 0;
    while (value != 0u) {
        value >>= 1;
        bits++;
    }
    return bits;
}

/* Arguments: samples, window, shift. */
mz_status mz_kernel_signal_window(const mz_call *call)
{
    mz_tensor input;
    mz_tensor window;
    mz_tensor output;
    int32_t shift;
    uint32_t i;
    MZ_TRY(take_typed(call, 0, MZ_ELEMENT_TYPE_INT16, &input));
    MZ_TRY(take_typed(call, 1, MZ_ELEMENT_TYPE_INT16, &window));
    MZ_TRY(mz_take_int(call, 2, &shift));
    MZ_TRY(give_typed(call, 0, MZ_ELEMENT_TYPE_INT16, &output));
    MZ_TAKES(shift >= 0 && shift < 31 && input.count == output.count && window.count > 0u);
    for (i = 0; call->checking == 0 && i < input.count; i++) {
        const int64_t product =
            mz_get_integer(&input, i) * mz_get_integer(&window, i % window.count);
        int64_t found = product >> shift;
        found = found > INT16_MAX ? INT16_MAX : found;
        mz_put_integer(&output, i, found < INT16_MIN ? INT16_MIN : found);
    }
    return MZ_OK;
}

/* Samples shifted to the left as far as they go, and how far that was. Argument: samples. */
mz_status mz_kernel_signal_scale(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    mz_tensor scale;
    uint32_t largest = 0;
    int32_t bits;
    uint32_t i;
    MZ_TRY(take_typed(call, 0, MZ_ELEMENT_TYPE_INT16, &input));
    MZ_TRY(give_typed(call, 0, MZ_ELEMENT_TYPE_INT16, &output));
    MZ_TRY(give_typed(call, 1, MZ_ELEMENT_TYPE_INT32, &scale));
    MZ_TAKES(input.count == output.count && scale.count == 1u);
    if (call->checking != 0) {
        return MZ_OK;
    }
    for (i = 0; i < input.count; i++) {
        const int32_t value = (int32_t)mz_get_integer(&input, i);
        const uint32_t size = (uint32_t)(value < 0 ? -value : value);
        largest = size > largest ? size : largest;
    }
    bits = 15 - bits_of(largest);
    bits = bits < 0 ? 0 : bits;
    for (i = 0; i < input.count; i++) {
        mz_put_integer(&output, i, mz_get_integer(&input, i) * ((int64_t)1 << bits));
    }
    mz_put_integer(&scale, 0, bits);
    return MZ_OK;
}

typedef struct {
    int16_t real;
    int16_t imaginary;
} complex16;

/* A product of 15 fractional bits, half up. */
static int16_t rounded(int64_t product)
{
    return (int16_t)((product + (1 << 14)) >> 15);
}

static complex16 times(complex16 a, complex16 b)
{
    complex16 product;
    product.real = rounded((int64_t)a.real * b.real - (int64_t)a.imaginary * b.imaginary);
    product.imaginary = rounded((int64_t)a.real * b.imaginary + (int64_t)a.imaginary * b.real);
    return product;
}

static complex16 divided(complex16 a, int32_t divisor)
{
    complex16 part;
    part.real = rounded(a.real * (INT16_MAX / divisor));
    part.imaginary = rounded(a.imaginary * (INT16_MAX / divisor));
    return part;
}

static complex16 sum(complex16 a, complex16 b)
{
    complex16 found;
    found.real = (int16_t)(a.real + b.real);
    found.imaginary = (int16_t)(a.imaginary + b.imaginary);
    return found;
}

static complex16 difference(complex16 a, complex16 b)
{
    complex16 found;
    found.real = (int16_t)(a.real - b.real);
    found.imaginary = (int16_t)(a.imaginary - b.imaginary);
    return found;
}

static void butterfly_2(complex16 *data, uint32_t m, uint32_t stride, const complex16 *factors)
{
    uint32_t k;
    for (k = 0; k < m; k++) {
        const complex16 a = divided(data[k], 2);
        const complex16 b = times(divided(data[k + m], 2), factors[k * stride]);
        data[k] = sum(a, b);
        data[k + m] = difference(a, b);
    }
}

static void butterfly_4(complex16 *data, uint32_t m, uint32_t stride, const complex16 *factors)
{
    uint32_t k;
    for (k = 0; k < m; k++) {
        const complex16 a = divided(data[k], 4);
        const complex16 b = times(divided(data[k + m], 4), factors[k * stride]);
        const complex16 c = times(divided(data[k + 2u * m], 4), factors[2u * k * stride]);
        const complex16 d = times(divided(data[k + 3u * m], 4), factors[3u * k * stride]);
        const complex16 even = sum(a, c);
        const complex16 odd = difference(a, c);
        const complex16 outer = sum(b, d);
        const complex16 inner = difference(b, d);
        data[k] = sum(even, outer);
        data[k + 2u * m] = difference(even, outer);
        data[k + m].real = (int16_t)(odd.real + inner.imaginary);
        data[k + m].imaginary = (int16_t)(odd.imaginary - inner.real);
        data[k + 3u * m].real = (int16_t)(odd.real - inner.imaginary);
        data[k + 3u * m].imaginary = (int16_t)(odd.imaginary + inner.real);
    }
}

/* Where an element of the transform's result takes its sample: the digits of its place, to the
 * bases of the stages, in the other order. */
static uint32_t source_of(uint32_t place, uint32_t count)
{
    uint32_t left = count;
    uint32_t weight = 1;
    uint32_t source = 0;
    while (left > 1u) {
        const uint32_t radix = left % 4u == 0u ? 4u : 2u;
        left /= radix;
        source += place / left * weight;
        place %= left;
        weight *= radix;
    }
    return source;
}

static void transform(complex16 *data, uint32_t count, const complex16 *factors)
{
    const uint32_t is_odd = bits_of(count) % 2 == 0 ? 1u : 0u;
    uint32_t m = 1;
    uint32_t at;
    if (is_odd != 0u) {
        for (at = 0; at < count; at += 2u) {
            butterfly_2(data + at, 1, count / 2u, factors);
        }
        m = 2;
    }
    for (; m < count; m *= 4u) {
        for (at = 0; at < count; at += 4u * m) {
            butterfly_4(data + at, m, count / (4u * m), factors);
        }
    }
}

/* The spectrum of real samples from that of pairs of them. */
static void split_pairs(complex16 *data, uint32_t count, const complex16 *turns)
{
    const complex16 first = divided(data[0], 2);
    uint32_t k;
    data[0].real = (int16_t)(first.real + first.imaginary);
    data[0].imaginary = 0;
    data[count].real = (int16_t)(first.real - first.imaginary);
    data[count].imaginary = 0;
    for (k = 1; k <= count / 2u; k++) {
        const complex16 low = divided(data[k], 2);
        complex16 high = data[count - k];
        complex16 both;
        complex16 turned;
        high.imaginary = (int16_t)-high.imaginary;
        high = divided(high, 2);
        both = sum(low, high);
        turned = times(difference(low, high), turns[k - 1u]);
        data[k].real = (int16_t)((both.real + turned.real) >> 1);
        data[k].imaginary = (int16_t)((both.imaginary + turned.imaginary) >> 1);
        data[count - k].real = (int16_t)((both.real - turned.real) >> 1);
        data[count - k].imaginary = (int16_t)((turned.imaginary - both.imaginary) >> 1);
    }
}

/* Arguments: samples, factors of the butterflies, turns of the pairs, length of the transform: a
 * power of two. Samples beyond those that there are count as 0. */
mz_status mz_kernel_signal_spectrum(const mz_call *call)
{
    mz_tensor input;
    mz_tensor factors;
    mz_tensor turns;
    mz_tensor output;
    int32_t length;
    uint32_t pairs;
    uint32_t i;
    int16_t *data;
    MZ_TRY(take_typed(call, 0, MZ_ELEMENT_TYPE_INT16, &input));
    MZ_TRY(take_typed(call, 1, MZ_ELEMENT_TYPE_INT16, &factors));
    MZ_TRY(take_typed(call, 2, MZ_ELEMENT_TYPE_INT16, &turns));
    MZ_TRY(mz_take_int(call, 3, &length));
    MZ_TRY(give_typed(call, 0, MZ_ELEMENT_TYPE_INT16, &output));
    MZ_TAKES(length >= 8 && length <= LARGEST_FFT && (length & (length - 1)) == 0);
    pairs = (uint32_t)length / 2u;
    MZ_TAKES(factors.count == 2u * pairs && turns.count == pairs);
    MZ_TAKES(output.count == 2u * pairs + 2u && input.data != output.data);
    if (call->checking != 0) {
        return MZ_OK;
    }
    data = output.data;
    for (i = 0; i < pairs; i++) {
        const uint32_t from = 2u * source_of(i, pairs);
        data[2u * i] = from < input.count ? ((int16_t *)input.data)[from] : (int16_t)0;
        data[2u * i + 1u] =
            from + 1u < input.count ? ((int16_t *)input.data)[from + 1u] : (int16_t)0;
    }
    transform((complex16 *)output.data, pairs, (const complex16 *)factors.data);
    split_pairs((complex16 *)output.data, pairs, (const complex16 *)turns.data);
    return MZ_OK;
}

/* Arguments: spectrum, first element, one past the last; others are 0. */
mz_status mz_kernel_signal_energy(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    int32_t first;
    int32_t end;
    uint32_t i;
    MZ_TRY(take_typed(call, 0, MZ_ELEMENT_TYPE_INT16, &input));
    MZ_TRY(mz_take_int(call, 1, &first));
    MZ_TRY(mz_take_int(call, 2, &end));
    MZ_TRY(give_typed(call, 0, MZ_ELEMENT_TYPE_UINT32, &output));
    MZ_TAKES(input.count == 2u * (uint64_t)output.count && first >= 0 && end >= first);
    for (i = 0; call->checking == 0 && i < output.count; i++) {
        const int64_t real = mz_get_integer(&input, 2u * i);
        const int64_t imaginary = mz_get_integer(&input, 2u * i + 1u);
        const int is_wanted = i >= (uint32_t)first && i < (uint32_t)end;
        mz_put_integer(&output, i, is_wanted ? real * real + imaginary * imaginary : 0);
    }
    return MZ_OK;
}

/* Arguments: energies; weights, weights of what goes to the next channel; of each channel and one
 * more, which comes first: its first energy, its first weight, how many. */
mz_status mz_kernel_signal_bank(const mz_call *call)
{
    mz_tensor inputs[6];
    mz_tensor output;
    uint64_t carried = 0;
    uint32_t i;
    uint32_t j;
    MZ_TRY(take_typed(call, 0, MZ_ELEMENT_TYPE_UINT32, &inputs[0]));
    for (i = 1; i < 6u; i++) {
        MZ_TRY(take_typed(call, i, MZ_ELEMENT_TYPE_INT16, &inputs[i]));
        MZ_TAKES(i < 4u || inputs[i].count == inputs[3].count);
    }
    MZ_TRY(give_typed(call, 0, MZ_ELEMENT_TYPE_UINT64, &output));
    MZ_TAKES(inputs[1].count == inputs[2].count);
    MZ_TAKES(inputs[3].count == (uint64_t)output.count + 1u);
    for (i = 0; call->checking == 0 && i <= output.count; i++) {
        const int64_t energy = mz_get_integer(&inputs[3], i);
        const int64_t weight = mz_get_integer(&inputs[4], i);
        const int64_t width = mz_get_integer(&inputs[5], i);
        uint64_t kept = carried;
        carried = 0;
        if (energy < 0 || weight < 0 || width < 0 || energy + width > (int64_t)inputs[0].count ||
            weight + width > (int64_t)inputs[1].count) {
            return MZ_ERROR_INDEX;
        }
        for (j = 0; j < (uint32_t)width; j++) {
            const uint64_t value = (uint64_t)mz_get_integer(&inputs[0], (uint32_t)energy + j);
            kept += value * (uint64_t)mz_get_integer(&inputs[1], (uint32_t)weight + j);
            carried += value * (uint64_t)mz_get_integer(&inputs[2], (uint32_t)weight + j);
        }
        if (i > 0u) {
            ((uint64_t *)output.data)[i - 1u] = kept;
        }
    }
    return MZ_OK;
}

/* The nearest whole root, but never one more bit than the floor of the root has. */
static uint32_t root(uint64_t value)
{
    const uint64_t most = value >> 32 == 0u ? 0xffffu : 0xffffffffu;
    uint64_t found = 0;
    uint64_t bit = (uint64_t)1 << 31;
    for (; bit != 0u; bit >>= 1) {
        const uint64_t tried = found | bit;
        if (tried * tried <= value) {
            found = tried;
        }
    }
    if (value - found * found > found && found != most) {
        found++;
    }
    return (uint32_t)found;
}

/* Arguments: energies, by how many bits the samples were shifted. */
mz_status mz_kernel_signal_root(const mz_call *call)
{
    mz_tensor input;
    mz_tensor scale;
    mz_tensor output;
    int64_t bits;
    uint32_t i;
    MZ_TRY(take_typed(call, 0, MZ_ELEMENT_TYPE_UINT64, &input));
    MZ_TRY(take_typed(call, 1, MZ_ELEMENT_TYPE_INT32, &scale));
    MZ_TRY(give_typed(call, 0, MZ_ELEMENT_TYPE_UINT32, &output));
    MZ_TAKES(input.count == output.count && scale.count == 1u);
    if (call->checking != 0) {
        return MZ_OK;
    }
    bits = mz_get_integer(&scale, 0);
    if (bits < 0 || bits > 31) {
        return MZ_ERROR_INDEX;
    }
    for (i = 0; i < input.count; i++) {
        ((uint32_t *)output.data)[i] = root(((const uint64_t *)input.data)[i]) >> bits;
    }
    return MZ_OK;
}

/* Arguments: signal, noise so far; smoothing of even and of odd channels and what each leaves of
 * the noise so far, least part of the signal that stays, bits of smoothing, bits of these parts,
 * whether noise is no more than the signal. Outputs: signal without noise, noise, noise so far. */
mz_status mz_kernel_signal_subtract(const mz_call *call)
{
    mz_tensor rows[5];
    int32_t numbers[8];
    uint32_t i;
    MZ_TRY(take_typed(call, 0, MZ_ELEMENT_TYPE_UINT32, &rows[0]));
    MZ_TRY(take_typed(call, 1, MZ_ELEMENT_TYPE_UINT32, &rows[1]));
    for (i = 0; i < 8u; i++) {
        MZ_TRY(mz_take_int(call, i + 2u, &numbers[i]));
    }
    for (i = 0; i < 3u; i++) {
        MZ_TRY(give_typed(call, i, MZ_ELEMENT_TYPE_UINT32, &rows[2u + i]));
        MZ_TAKES(rows[2u + i].count == rows[0].count);
    }
    MZ_TAKES(rows[1].count == rows[0].count);
    MZ_TAKES(numbers[5] >= 0 && numbers[5] < 32 && numbers[6] >= 0 && numbers[6] < 32);
    for (i = 0; call->checking == 0 && i < rows[0].count; i++) {
        const uint32_t signal = ((const uint32_t *)rows[0].data)[i];
        const uint32_t raised = signal << numbers[5];
        const uint64_t taken = (uint64_t)raised * (uint32_t)numbers[2u * (i % 2u)];
        const uint64_t left = (uint64_t)((const uint32_t *)rows[1].data)[i] *
                              (uint32_t)numbers[2u * (i % 2u) + 1u];
        uint32_t noise = (uint32_t)((taken + left) >> numbers[6]);
        const uint32_t estimate = noise > raised ? raised : noise;
        const uint32_t least = (uint32_t)(((uint64_t)signal * (uint32_t)numbers[4]) >> numbers[6]);
        const uint32_t rest = (raised - estimate) >> numbers[5];
        noise = numbers[7] != 0 ? estimate : noise;
        ((uint32_t *)rows[2].data)[i] = rest > least ? rest : least;
        ((uint32_t *)rows[3].data)[i] = noise;
        ((uint32_t *)rows[4].data)[i] = noise;
    }
    return MZ_OK;
}

/* A function of 32 bits by a table: three numbers for each power of two, a parabola between. */
static int32_t gain_of(uint32_t noise, const int16_t *table)
{
    int32_t interval;
    uint32_t fraction;
    int32_t found;
    if (noise <= 2u) {
        return table[noise];
    }
    interval = bits_of(noise);
    table += 4 * interval - 6;
    fraction = (interval < 11 ? noise << (11 - interval) : noise >> (interval - 11)) & 0x3ffu;
    found = (table[2] * (int32_t)fraction) >> 5;
    found += table[1] * 32;
    found = (int32_t)((uint32_t)found * fraction);
    found = (int32_t)((uint32_t)found + (1u << 14)) >> 15;
    return (int16_t)(found + table[0]);
}

/* Arguments: signal, noise, table of gains, bits of the ratio. */
mz_status mz_kernel_signal_gain(const mz_call *call)
{
    mz_tensor input;
    mz_tensor noise;
    mz_tensor table;
    mz_tensor output;
    int32_t shift;
    uint32_t i;
    MZ_TRY(take_typed(call, 0, MZ_ELEMENT_TYPE_UINT32, &input));
    MZ_TRY(take_typed(call, 1, MZ_ELEMENT_TYPE_UINT32, &noise));
    MZ_TRY(take_typed(call, 2, MZ_ELEMENT_TYPE_INT16, &table));
    MZ_TRY(mz_take_int(call, 3, &shift));
    MZ_TRY(give_typed(call, 0, MZ_ELEMENT_TYPE_UINT32, &output));
    MZ_TAKES(input.count == output.count && noise.count == input.count);
    MZ_TAKES(table.count >= 125u && shift >= 0 && shift < 64);
    for (i = 0; call->checking == 0 && i < input.count; i++) {
        const int32_t gain = gain_of(((const uint32_t *)noise.data)[i], table.data);
        const uint64_t product = (uint64_t)((const uint32_t *)input.data)[i] * (uint64_t)gain;
        const uint32_t ratio = (uint32_t)(product >> shift);
        ((uint32_t *)output.data)[i] =
            ratio < 2u << 12 ? (ratio * ratio) >> 20 : (ratio >> 6) - (1u << 6);
    }
    return MZ_OK;
}

/* log2 of a number above 1, 16 fractional bits, by a table of what it is above a straight line. */
static uint32_t binary_logarithm(uint32_t value, const int32_t *table)
{
    const int32_t whole = bits_of(value) - 1;
    uint32_t fraction = value - ((uint32_t)1 << whole);
    uint32_t segment;
    int64_t rise;
    fraction = whole < 16 ? fraction << (16 - whole) : fraction >> (whole - 16);
    segment = fraction >> 9;
    rise = ((int64_t)table[segment + 1u] - table[segment]) * (fraction - segment * 512u);
    return ((uint32_t)whole << 16) + fraction + (uint32_t)(table[segment] + (rise >> 16));
}

/* Arguments: input, table of logarithms, scale of the output, bits to shift the input by. */
mz_status mz_kernel_signal_logarithm(const mz_call *call)
{
    const uint64_t natural = 45426; /* ln 2, 16 fractional bits */
    mz_tensor input;
    mz_tensor table;
    mz_tensor output;
    int32_t scale;
    int32_t bits;
    uint32_t i;
    MZ_TRY(take_typed(call, 0, MZ_ELEMENT_TYPE_UINT32, &input));
    MZ_TRY(take_typed(call, 1, MZ_ELEMENT_TYPE_INT32, &table));
    MZ_TRY(mz_take_int(call, 2, &scale));
    MZ_TRY(mz_take_int(call, 3, &bits));
    MZ_TRY(give_typed(call, 0, MZ_ELEMENT_TYPE_INT16, &output));
    MZ_TAKES(input.count == output.count && table.count == 129u);
    MZ_TAKES(scale >= 0 && bits >= 0 && bits < 32);
    for (i = 0; call->checking == 0 && i < input.count; i++) {
        const uint32_t value = ((const uint32_t *)input.data)[i] << bits;
        uint64_t found = 0;
        if (value > 1u) {
            found = (natural * binary_logarithm(value, table.data) + 0x8000u) >> 16;
            found = (found * (uint32_t)scale + 0x8000u) >> 16;
        }
        mz_put_integer(&output, i, found > INT16_MAX ? INT16_MAX : (int64_t)found);
    }
    return MZ_OK;
}
