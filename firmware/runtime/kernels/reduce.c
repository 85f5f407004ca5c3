/* Rows to single elements. Arguments: an mz_reduction, input, length, inner. */
#include "elements.h"
#include "rows.h"

mz_status mz_kernel_reduce(const mz_call *call);

/* Whether an element takes the place of the best so far. NaN beats all (PyTorch), or nothing
 * (TFLite). */
static int beats(const mz_tensor *input, uint32_t at, uint32_t best, int wants_less, int nan_beats)
{
    if (mz_is_integer(input->type) != 0) {
        const int64_t one = mz_get_integer(input, at);
        const int64_t other = mz_get_integer(input, best);
        return wants_less != 0 ? one < other : one > other;
    } else {
        const float one = mz_get_real(input, at);
        const float other = mz_get_real(input, best);
        if (one != one) {
            return nan_beats != 0 && other == other;
        }
        return wants_less != 0 ? one < other : one > other;
    }
}

static uint32_t best_of(const mz_tensor *input, const mz_rows *rows, uint32_t start,
                        int32_t operation)
{
    const int wants_less = operation == MZ_REDUCTION_MINIMUM ||
                           operation == MZ_REDUCTION_ARGUMENT_OF_MINIMUM ||
                           operation == MZ_REDUCTION_PLACE_OF_LEAST;
    const int nan_beats = operation < MZ_REDUCTION_PLACE_OF_GREATEST;
    uint32_t best = 0;
    uint32_t i;
    for (i = 1; i < rows->length; i++) {
        if (beats(input, start + i * rows->inner, start + best * rows->inner, wants_less,
                  nan_beats)) {
            best = i;
        }
    }
    return best;
}

static int is_mean(int32_t operation)
{
    return operation == MZ_REDUCTION_MEAN || operation == MZ_REDUCTION_RUNNING_MEAN;
}

/* Sums of reals are kept in double, and rounded once. Running ones are rounded each time. */
static void add_up(int32_t operation, const mz_tensor *input, const mz_rows *rows, uint32_t start,
                   const mz_tensor *output, uint32_t row)
{
    double real = operation == MZ_REDUCTION_PRODUCT ? 1.0 : 0.0;
    uint64_t whole = operation == MZ_REDUCTION_PRODUCT ? 1u : 0u;
    uint32_t i;
    for (i = 0; i < rows->length; i++) {
        const uint32_t at = start + i * rows->inner;
        if (mz_is_integer(input->type) != 0) {
            const uint64_t value = (uint64_t)mz_get_integer(input, at);
            whole = operation == MZ_REDUCTION_PRODUCT ? whole * value : whole + value;
        } else {
            const double value = (double)mz_get_real(input, at);
            real = operation == MZ_REDUCTION_PRODUCT ? real * value : real + value;
            real = operation >= MZ_REDUCTION_RUNNING_SUM ? (double)(float)real : real;
        }
    }
    if (mz_is_integer(input->type) != 0) {
        mz_put_integer(output, row, (int64_t)whole);
    } else {
        const double divisor = is_mean(operation) ? (double)rows->length : 1.0;
        mz_put_real(output, row, (float)(real / divisor));
    }
}

static int64_t count_true(const mz_tensor *input, const mz_rows *rows, uint32_t start)
{
    int64_t count = 0;
    uint32_t i;
    for (i = 0; i < rows->length; i++) {
        const uint32_t at = start + i * rows->inner;
        if (mz_is_integer(input->type) != 0 ? mz_get_integer(input, at) != 0
                                            : !(mz_get_real(input, at) == 0.0f)) {
            count++;
        }
    }
    return count;
}

/* The greatest or the least real: none is beyond the largest finite one, NaN is never it
 * (TFLite). */
static void bounded(int32_t operation, const mz_tensor *input, const mz_rows *rows, uint32_t start,
                    const mz_tensor *output, uint32_t row)
{
    const float largest = 3.402823466e38f;
    float found = operation == MZ_REDUCTION_LEAST ? largest : -largest;
    uint32_t i;
    for (i = 0; i < rows->length; i++) {
        const float value = mz_get_real(input, start + i * rows->inner);
        if (operation == MZ_REDUCTION_LEAST ? value < found : value > found) {
            found = value;
        }
    }
    mz_put_real(output, row, found);
}

static void take_over(const mz_tensor *input, uint32_t at, const mz_tensor *output, uint32_t row)
{
    if (mz_is_integer(input->type) != 0) {
        mz_put_integer(output, row, mz_get_integer(input, at));
    } else {
        mz_put_real(output, row, mz_get_real(input, at));
    }
}

static void reduce(int32_t operation, const mz_tensor *input, const mz_rows *rows, uint32_t row,
                   const mz_tensor *output)
{
    const uint32_t start = mz_row_start(rows, row);
    switch (operation) {
    case MZ_REDUCTION_MAXIMUM:
    case MZ_REDUCTION_MINIMUM:
        take_over(input, start + best_of(input, rows, start, operation) * rows->inner, output, row);
        break;
    case MZ_REDUCTION_ARGUMENT_OF_MAXIMUM:
    case MZ_REDUCTION_ARGUMENT_OF_MINIMUM:
    case MZ_REDUCTION_PLACE_OF_GREATEST:
    case MZ_REDUCTION_PLACE_OF_LEAST:
        mz_put_integer(output, row, best_of(input, rows, start, operation));
        break;
    case MZ_REDUCTION_ANY:
        mz_put_integer(output, row, count_true(input, rows, start) > 0);
        break;
    case MZ_REDUCTION_ALL:
        mz_put_integer(output, row, count_true(input, rows, start) == (int64_t)rows->length);
        break;
    case MZ_REDUCTION_GREATEST:
    case MZ_REDUCTION_LEAST:
        bounded(operation, input, rows, start, output, row);
        break;
    default:
        add_up(operation, input, rows, start, output, row);
        break;
    }
}

mz_status mz_kernel_reduce(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    mz_rows rows;
    int32_t operation;
    uint32_t i;
    MZ_TRY(mz_take_int(call, 0, &operation));
    MZ_TRY(mz_take_tensor(call, 1, &input));
    MZ_TRY(mz_rows_take(call, 2, &input, &rows));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(operation >= 0 && operation < (int32_t)MZ_REDUCTION_COUNT);
    MZ_TAKES(output.count == rows.count);
    MZ_TAKES(is_mean(operation) == 0 || mz_is_integer(input.type) == 0);
    MZ_TAKES((operation != MZ_REDUCTION_GREATEST && operation != MZ_REDUCTION_LEAST) ||
             mz_is_integer(input.type) == 0);
    for (i = 0; call->checking == 0 && i < rows.count; i++) {
        reduce(operation, &input, &rows, i, &output);
    }
    return MZ_OK;
}
