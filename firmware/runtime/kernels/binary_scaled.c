/* Two elements of quantised tensors to one. Arguments: an mz_binary, two inputs, extents, strides
 * of each input, then twelve numbers: zero point, multiplier and shift of each input, shift to the
 * left of both, multiplier, shift and zero point of the output, low, high. The output is dense.
 *
 * Sums, differences and comparisons scale both inputs first; products are scaled afterwards. Of
 * MZ_BINARY_SLOPE, the first input's scale is that of elements from 0 on.
 *
 * Ref: TFLite, reference_ops: AddElementwise, SubElementwise, ComparisonWithScaling, Prelu;
 * reference_integer_ops::MulElementwise; TFLite Micro, squared_difference.cc. */
#include "compare.h"
#include "elements.h"
#include "fixed_point.h"
#include "numbers.h"
#include "strides.h"

#define NUMBERS 12u

mz_status mz_kernel_binary_scaled(const mz_call *call);

typedef struct {
    int32_t point;
    int32_t multiplier;
    int32_t shift;
} scaling;

typedef struct {
    int32_t operation;
    scaling inputs[2];
    int32_t left;
    scaling output;
    int32_t low;
    int32_t high;
} quantization;

static int32_t scaled(const scaling *by, int32_t left, int32_t value)
{
    return mz_scale(mz_shift_left(value, left), by->multiplier, by->shift);
}

/* The element before the output's zero point: of integers less their zero points. */
static int32_t combined(const quantization *how, int32_t a, int32_t b)
{
    const int32_t product = mz_low_word((int64_t)a * b);
    int32_t difference;
    switch (how->operation) {
    case MZ_BINARY_MULTIPLY:
        return scaled(&how->output, 0, product);
    case MZ_BINARY_SLOPE:
        return a >= 0 ? scaled(&how->inputs[0], 0, a) : scaled(&how->output, 0, product);
    default:
        break;
    }
    a = scaled(&how->inputs[0], how->left, a);
    b = scaled(&how->inputs[1], how->left, b);
    difference = mz_low_word((int64_t)a - b);
    switch (how->operation) {
    case MZ_BINARY_ADD:
        return scaled(&how->output, 0, mz_low_word((int64_t)a + b));
    case MZ_BINARY_SUBTRACT:
        return scaled(&how->output, 0, difference);
    case MZ_BINARY_SQUARED_DIFFERENCE:
        return scaled(&how->output, 0, mz_low_word((int64_t)difference * difference));
    default:
        return mz_compares(how->operation, mz_order_of_integers(a, b));
    }
}

static void compute(const quantization *how, const mz_tensor inputs[2], const mz_tensor *output,
                    mz_walk *walk)
{
    uint32_t i;
    for (i = 0; i < output->count; i++, mz_walk_step(walk)) {
        int32_t values[2];
        int64_t found;
        uint32_t k;
        for (k = 0; k < 2u; k++) {
            const int64_t value = mz_get_integer(&inputs[k], (uint32_t)walk->place[k]);
            values[k] = (int32_t)value - how->inputs[k].point;
        }
        found = (int64_t)combined(how, values[0], values[1]) + how->output.point;
        found = found < how->low ? how->low : found;
        mz_put_integer(output, i, found > how->high ? how->high : found);
    }
}

static int is_narrow(const mz_tensor *tensor)
{
    return mz_is_integer(tensor->type) != 0 && mz_element_bytes(tensor->type) <= 2u;
}

static int is_sound(const scaling *by)
{
    return by->shift >= -31 && by->shift <= 31 && by->point >= INT16_MIN && by->point <= UINT16_MAX;
}

static mz_status take_quantization(const mz_call *call, uint32_t place, quantization *how)
{
    int32_t found[NUMBERS];
    uint32_t i;
    MZ_TRY(mz_take_ints(call, place, found, NUMBERS));
    for (i = 0; i < 2u; i++) {
        how->inputs[i].point = found[3u * i];
        how->inputs[i].multiplier = found[3u * i + 1u];
        how->inputs[i].shift = found[3u * i + 2u];
    }
    how->left = found[6];
    how->output.multiplier = found[7];
    how->output.shift = found[8];
    how->output.point = found[9];
    how->low = found[10];
    how->high = found[11];
    MZ_TAKES(is_sound(&how->inputs[0]) && is_sound(&how->inputs[1]) && is_sound(&how->output));
    MZ_TAKES(how->left >= 0 && how->left <= 31 && how->low <= how->high);
    return MZ_OK;
}

static int takes(int32_t operation)
{
    return operation == MZ_BINARY_ADD || operation == MZ_BINARY_SUBTRACT ||
           operation == MZ_BINARY_MULTIPLY || operation == MZ_BINARY_SLOPE ||
           operation == MZ_BINARY_SQUARED_DIFFERENCE || mz_is_comparison(operation);
}

mz_status mz_kernel_binary_scaled(const mz_call *call)
{
    mz_tensor inputs[2];
    mz_tensor output;
    mz_walk walk;
    uint32_t counts[2];
    quantization how;
    MZ_TRY(mz_take_int(call, 0, &how.operation));
    MZ_TRY(mz_take_tensor(call, 1, &inputs[0]));
    MZ_TRY(mz_take_tensor(call, 2, &inputs[1]));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    counts[0] = inputs[0].count;
    counts[1] = inputs[1].count;
    MZ_TRY(mz_walk_start(call, 3, 2, counts, output.count, &walk));
    MZ_TRY(take_quantization(call, 6, &how));
    MZ_TAKES(mz_walk_count(&walk) == output.count && takes(how.operation));
    MZ_TAKES(is_narrow(&inputs[0]) && is_narrow(&inputs[1]) && is_narrow(&output));
    if (call->checking == 0) {
        compute(&how, inputs, &output, &walk);
    }
    return MZ_OK;
}
