/* The mean or the greatest of windows. Arguments: an mz_pool, input, the numbers of the window,
 * what a sum is divided by, or 0 for the elements that are there, low, high.
 *
 * Ref: TFLite, reference_ops and reference_integer_ops: AveragePool, MaxPool; PyTorch, avg_pool2d
 * and max_pool2d (NaN is the greatest). */
#include "elements.h"
#include "window.h"

#define LARGEST 3.402823466e38f

mz_status mz_kernel_pool(const mz_call *call);

typedef struct {
    mz_tensor input;
    mz_tensor output;
    int32_t operation;
    int32_t divisor;
    int32_t low;
    int32_t high;
    float limits[2];
} pooling;

/* What is known of a window. */
typedef struct {
    int32_t count;
    int64_t whole;
    float real;
} state;

static void take_in(const pooling *how, uint32_t place, state *so_far)
{
    const int is_first = so_far->count == 0;
    so_far->count++;
    if (mz_is_integer(how->input.type) != 0) {
        const int64_t value = mz_get_integer(&how->input, place);
        if (how->operation == MZ_POOL_AVERAGE) {
            so_far->whole += value;
        } else if (is_first != 0 || value > so_far->whole) {
            so_far->whole = value;
        } else {
            /* one before was greater */
        }
    } else {
        const float value = mz_get_real(&how->input, place);
        if (how->operation == MZ_POOL_AVERAGE) {
            so_far->real += value;
        } else if (value > so_far->real || (is_first != 0 && how->operation == MZ_POOL_MAXIMUM) ||
                   (value != value && how->operation == MZ_POOL_MAXIMUM)) {
            so_far->real = value;
        } else {
            /* one before was greater */
        }
    }
}

/* Half away from zero. */
static int64_t mean(int64_t sum, int64_t count)
{
    return sum > 0 ? (sum + count / 2) / count : (sum - count / 2) / count;
}

static void compute(const void *what, const mz_window *window, const mz_output_at *at)
{
    const pooling *how = what;
    const int32_t rows_end = mz_span_end(&window->rows, at->row);
    const int32_t columns_end = mz_span_end(&window->columns, at->column);
    state found = {0, 0, 0.0f};
    int32_t divisor;
    int32_t y;
    int32_t x;
    found.real = how->operation == MZ_POOL_GREATEST ? -LARGEST : 0.0f;
    for (y = mz_span_start(&window->rows, at->row); y < rows_end; y++) {
        const int32_t row = mz_span_at(&window->rows, at->row, y);
        for (x = mz_span_start(&window->columns, at->column); x < columns_end; x++) {
            const int32_t column = mz_span_at(&window->columns, at->column, x);
            take_in(how,
                    at->batch * (uint32_t)window->input[0] + (uint32_t)(row * window->input[1]) +
                        (uint32_t)(column * window->input[2]) +
                        (uint32_t)(at->channel * window->input[3]),
                    &found);
        }
    }
    divisor = how->divisor > 0 ? how->divisor : found.count;
    if (how->operation == MZ_POOL_AVERAGE && divisor > 0) {
        found.whole = mean(found.whole, divisor);
        found.real /= (float)divisor;
    }
    if (mz_is_integer(how->input.type) != 0) {
        found.whole = found.whole < how->low ? how->low : found.whole;
        mz_put_integer(&how->output, at->place, found.whole > how->high ? how->high : found.whole);
    } else {
        found.real = found.real < how->limits[0] ? how->limits[0] : found.real;
        mz_put_real(&how->output, at->place,
                    found.real > how->limits[1] ? how->limits[1] : found.real);
    }
}

mz_status mz_kernel_pool(const mz_call *call)
{
    pooling how;
    mz_window window;
    MZ_TRY(mz_take_int(call, 0, &how.operation));
    MZ_TRY(mz_take_tensor(call, 1, &how.input));
    MZ_TRY(mz_give_tensor(call, 0, &how.output));
    MZ_TRY(mz_window_take(call, 2, &how.input, &how.output, &window));
    MZ_TRY(mz_take_int(call, 3, &how.divisor));
    MZ_TAKES(how.operation >= 0 && how.operation < (int32_t)MZ_POOL_COUNT);
    MZ_TAKES(how.input.type == how.output.type && window.input_channels == window.channels);
    MZ_TAKES(window.rows.up == 1 && window.columns.up == 1);
    if (mz_is_integer(how.input.type) != 0) {
        MZ_TRY(mz_take_int(call, 4, &how.low));
        MZ_TRY(mz_take_int(call, 5, &how.high));
    } else {
        MZ_TRY(mz_take_real(call, 4, &how.limits[0]));
        MZ_TRY(mz_take_real(call, 5, &how.limits[1]));
    }
    if (call->checking == 0) {
        mz_window_walk(&window, compute, &how);
    }
    return MZ_OK;
}
