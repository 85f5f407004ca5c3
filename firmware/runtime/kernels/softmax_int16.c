/* Softmax of 16 bits by two tables of 513 entries, between which is interpolated. Arguments: input,
 * table of e^x from -10 to 0, table of 1 / (1 + x) from 0 to 1, length, inner, multiplier and shift
 * of a difference.
 *
 * Ref: TFLite, reference_ops::SoftmaxInt16 and LUTLookup. */
#include "elements.h"
#include "fixed_point.h"
#include "rows.h"

#define ENTRIES 513u

mz_status mz_kernel_softmax_int16(const mz_call *call);

typedef struct {
    const int16_t *powers;
    const int16_t *inverses;
    int32_t multiplier;
    int32_t shift;
} scaling;

/* Seven bits lie between two entries. */
static int32_t looked_up(const int16_t *table, int32_t value)
{
    const int32_t limited = value < INT16_MIN ? INT16_MIN : value;
    const uint32_t place = (uint32_t)((limited > INT16_MAX ? INT16_MAX : limited) - INT16_MIN);
    const int32_t low = table[place >> 7];
    const int32_t slope = table[(place >> 7) + 1u] - low;
    return low + ((slope * (int32_t)(place & 127u) + 64) >> 7);
}

static void softmax(const mz_tensor *input, const mz_rows *rows, uint32_t start,
                    const scaling *how, const mz_tensor *output)
{
    const int16_t *from = (const int16_t *)input->data + start;
    int16_t *to = (int16_t *)output->data + start;
    int32_t most = INT16_MIN;
    int32_t sum = 0;
    int32_t zeros;
    int32_t inverse;
    uint32_t i;
    for (i = 0; i < rows->length; i++) {
        most = from[i * rows->inner] > most ? from[i * rows->inner] : most;
    }
    for (i = 0; i < rows->length; i++) {
        const int32_t difference = from[i * rows->inner] - most;
        const int32_t scaled = mz_scale(difference, how->multiplier, how->shift);
        to[i * rows->inner] =
            (int16_t)looked_up(how->powers, mz_low_word((int64_t)scaled + INT16_MAX));
        sum = mz_low_word((int64_t)sum + to[i * rows->inner]);
    }
    zeros = mz_leading_zeros((uint32_t)sum);
    if (zeros < 1 || zeros > 29) {
        return;
    }
    inverse = (int32_t)(((int64_t)sum * ((int64_t)1 << (zeros - 1)) + (1 << 13)) >> 14);
    inverse = looked_up(how->inverses, inverse - (1 << 15) - (1 << 16));
    for (i = 0; i < rows->length; i++) {
        const int32_t bits = 31 - zeros;
        const int64_t product = (int64_t)to[i * rows->inner] * inverse;
        int64_t found = (product + ((int64_t)1 << (bits - 1))) >> bits;
        found = found < 0 ? 0 : found;
        to[i * rows->inner] = (int16_t)(found > INT16_MAX ? INT16_MAX : found);
    }
}

mz_status mz_kernel_softmax_int16(const mz_call *call)
{
    mz_tensor input;
    mz_tensor tables[2];
    mz_tensor output;
    mz_rows rows;
    scaling how;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    for (i = 0; i < 2u; i++) {
        MZ_TRY(mz_take_tensor(call, i + 1u, &tables[i]));
        MZ_TAKES(tables[i].type == (uint32_t)MZ_ELEMENT_TYPE_INT16 && tables[i].count == ENTRIES);
    }
    MZ_TRY(mz_rows_take(call, 3, &input, &rows));
    MZ_TRY(mz_take_int(call, 5, &how.multiplier));
    MZ_TRY(mz_take_int(call, 6, &how.shift));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(input.type == (uint32_t)MZ_ELEMENT_TYPE_INT16 && output.type == input.type);
    MZ_TAKES(input.count == output.count && output.data != input.data);
    MZ_TAKES(how.shift >= -31 && how.shift <= 31);
    how.powers = tables[0].data;
    how.inverses = tables[1].data;
    for (i = 0; call->checking == 0 && i < rows.count; i++) {
        softmax(&input, &rows, mz_row_start(&rows, i), &how, &output);
    }
    return MZ_OK;
}
