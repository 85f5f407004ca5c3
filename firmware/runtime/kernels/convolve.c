/* Sums of products of windows and weights. Arguments: input, weights, bias or nothing, multipliers
 * and shifts of each channel or nothing, the numbers of the window, then of the weights: channels
 * of the input that an output is made of, output channels that share them, the first weight, and
 * strides of batches, output channels, rows, columns and input channels. Of integers these follow:
 * zero points of input, weights and output, low, high, whether sums have 64 bits. Of reals: low,
 * high, whether sums are kept in double.
 *
 * Ref: TFLite, reference_integer_ops: ConvPerChannel, DepthwiseConvPerChannel, FullyConnected,
 * TransposeConv; reference_ops: Conv, DepthwiseConv, FullyConnected, BatchMatMul. */
#include "elements.h"
#include "fixed_point.h"
#include "numbers.h"
#include "window.h"

#define WEIGHTS 8u
#define INTEGERS 6u

mz_status mz_kernel_convolve(const mz_call *call);

typedef struct {
    mz_tensor input;
    mz_tensor weights;
    mz_tensor bias;
    mz_tensor multipliers;
    mz_tensor shifts;
    mz_tensor output;
    int has_bias;
    int32_t depth;
    int32_t sharing;
    int32_t first;
    int32_t strides[5];
    int32_t input_point;
    int32_t weights_point;
    int32_t output_point;
    int32_t low;
    int32_t high;
    int32_t is_wide;
    float limits[2];
} convolution;

/* Where a window's column of pixels starts in the input and in the weights. */
typedef struct {
    uint32_t input;
    uint32_t weights;
} column;

static int find_column(const convolution *how, const mz_window *window, const mz_output_at *at,
                       int32_t tap_row, int32_t tap_column, column *found)
{
    const int32_t row = mz_span_at(&window->rows, at->row, tap_row);
    const int32_t place = mz_span_at(&window->columns, at->column, tap_column);
    const int32_t channel = at->channel / how->sharing * how->depth;
    if (row < 0 || place < 0) {
        return 0;
    }
    found->input = at->batch * (uint32_t)window->input[0] + (uint32_t)(row * window->input[1]) +
                   (uint32_t)(place * window->input[2]) + (uint32_t)(channel * window->input[3]);
    found->weights = (uint32_t)((int64_t)how->first + (int64_t)at->batch * how->strides[0] +
                                (int64_t)at->channel * how->strides[1] +
                                (int64_t)tap_row * how->strides[2] +
                                (int64_t)tap_column * how->strides[3]);
    return 1;
}

static int32_t narrow(const mz_tensor *tensor, uint32_t place)
{
    return tensor->type == (uint32_t)MZ_ELEMENT_TYPE_INT8
               ? (int32_t)((const int8_t *)tensor->data)[place]
               : (int32_t)((const int16_t *)tensor->data)[place];
}

static int64_t products(const convolution *how, const mz_window *window, const column *from)
{
    int64_t sum = 0;
    int32_t i;
    for (i = 0; i < how->depth; i++) {
        const uint32_t a = from->input + (uint32_t)(i * window->input[3]);
        const uint32_t b = from->weights + (uint32_t)(i * how->strides[4]);
        sum += (int64_t)(narrow(&how->input, a) - how->input_point) *
               (narrow(&how->weights, b) - how->weights_point);
    }
    return sum;
}

static int32_t scaled(const convolution *how, int32_t channel, int64_t sum)
{
    const int32_t multiplier = ((const int32_t *)how->multipliers.data)[channel];
    int32_t shift = ((const int32_t *)how->shifts.data)[channel];
    shift = shift < -31 ? -31 : shift;
    if (how->is_wide != 0) {
        return mz_scale_wide(sum, multiplier, shift > 14 ? 14 : shift);
    }
    return mz_scale(mz_low_word(sum), multiplier, shift > 31 ? 31 : shift);
}

static void compute_integer(const void *what, const mz_window *window, const mz_output_at *at)
{
    const convolution *how = what;
    const int32_t rows_end = mz_span_end(&window->rows, at->row);
    const int32_t columns_end = mz_span_end(&window->columns, at->column);
    int64_t sum = 0;
    int64_t found;
    int32_t y;
    int32_t x;
    for (y = mz_span_start(&window->rows, at->row); y < rows_end; y++) {
        for (x = mz_span_start(&window->columns, at->column); x < columns_end; x++) {
            column from;
            if (find_column(how, window, at, y, x, &from) != 0) {
                sum += products(how, window, &from);
            }
        }
    }
    if (how->has_bias != 0) {
        sum = (int64_t)((uint64_t)sum +
                        (uint64_t)mz_get_integer(&how->bias, (uint32_t)at->channel));
    }
    found = (int64_t)scaled(how, at->channel, sum) + how->output_point;
    found = found < how->low ? how->low : found;
    mz_put_integer(&how->output, at->place, found > how->high ? how->high : found);
}

static void compute_real(const void *what, const mz_window *window, const mz_output_at *at)
{
    const convolution *how = what;
    const float *input = how->input.data;
    const float *weights = how->weights.data;
    const int32_t rows_end = mz_span_end(&window->rows, at->row);
    const int32_t columns_end = mz_span_end(&window->columns, at->column);
    float single = 0.0f;
    double exact = 0.0;
    int32_t y;
    int32_t x;
    int32_t i;
    for (y = mz_span_start(&window->rows, at->row); y < rows_end; y++) {
        for (x = mz_span_start(&window->columns, at->column); x < columns_end; x++) {
            column from;
            const int is_there = find_column(how, window, at, y, x, &from);
            for (i = 0; is_there != 0 && i < how->depth; i++) {
                const float a = input[from.input + (uint32_t)(i * window->input[3])];
                const float b = weights[from.weights + (uint32_t)(i * how->strides[4])];
                if (how->is_wide != 0) {
                    exact += (double)a * (double)b;
                } else {
                    single += a * b;
                }
            }
        }
    }
    if (how->has_bias != 0) {
        const float bias = mz_get_real(&how->bias, (uint32_t)at->channel);
        exact += (double)bias;
        single += bias;
    }
    single = how->is_wide != 0 ? (float)exact : single;
    single = single < how->limits[0] ? how->limits[0] : single;
    mz_put_real(&how->output, at->place, single > how->limits[1] ? how->limits[1] : single);
}

/* Every weight that an output has must be there; strides may go back. */
static mz_status check_weights(const convolution *how, const mz_window *window)
{
    const int64_t extents[5] = {window->batches, window->channels, window->rows.taps,
                                window->columns.taps, how->depth};
    int64_t low = how->first;
    int64_t high = how->first;
    int64_t used = 1;
    uint32_t i;
    for (i = 0; i < 5u; i++) {
        const int64_t reach = (extents[i] - 1) * how->strides[i];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
        used *= i > 0u ? extents[i] : 1;
        MZ_TAKES(used <= (int64_t)how->weights.count);
    }
    MZ_TAKES(low >= 0 && high < (int64_t)how->weights.count);
    return MZ_OK;
}

static mz_status take_weights(const mz_call *call, const mz_window *window, convolution *how)
{
    int32_t numbers[WEIGHTS];
    uint32_t i;
    MZ_TRY(mz_take_ints(call, 6, numbers, WEIGHTS));
    how->depth = numbers[0];
    how->sharing = numbers[1];
    how->first = numbers[2];
    for (i = 0; i < 5u; i++) {
        how->strides[i] = numbers[3u + i];
    }
    MZ_TAKES(how->depth >= 1 && how->sharing >= 1 && how->depth <= window->input_channels);
    MZ_TAKES(((int64_t)window->channels - 1) / how->sharing * how->depth + how->depth <=
             window->input_channels);
    return check_weights(how, window);
}

static mz_status take_integers(const mz_call *call, const mz_window *window, convolution *how)
{
    int32_t numbers[INTEGERS];
    MZ_TRY(mz_take_ints(call, 7, numbers, INTEGERS));
    how->input_point = numbers[0];
    how->weights_point = numbers[1];
    how->output_point = numbers[2];
    how->low = numbers[3];
    how->high = numbers[4];
    how->is_wide = numbers[5];
    MZ_TAKES(how->input_point >= INT16_MIN && how->input_point <= INT16_MAX);
    MZ_TAKES(how->weights_point >= INT16_MIN && how->weights_point <= INT16_MAX);
    MZ_TRY(mz_take_tensor(call, 3, &how->multipliers));
    MZ_TRY(mz_take_tensor(call, 4, &how->shifts));
    MZ_TAKES(how->multipliers.type == (uint32_t)MZ_ELEMENT_TYPE_INT32);
    MZ_TAKES(how->shifts.type == (uint32_t)MZ_ELEMENT_TYPE_INT32);
    MZ_TAKES(how->multipliers.count >= (uint32_t)window->channels);
    MZ_TAKES(how->shifts.count >= (uint32_t)window->channels);
    return MZ_OK;
}

static int is_narrow(const mz_tensor *tensor)
{
    return tensor->type == (uint32_t)MZ_ELEMENT_TYPE_INT8 ||
           tensor->type == (uint32_t)MZ_ELEMENT_TYPE_INT16;
}

mz_status mz_kernel_convolve(const mz_call *call)
{
    convolution how;
    mz_window window;
    int is_real;
    MZ_TRY(mz_take_tensor(call, 0, &how.input));
    MZ_TRY(mz_take_tensor(call, 1, &how.weights));
    MZ_TRY(mz_give_tensor(call, 0, &how.output));
    MZ_TRY(mz_window_take(call, 5, &how.input, &how.output, &window));
    MZ_TRY(take_weights(call, &window, &how));
    how.has_bias = mz_has(call, 2);
    if (how.has_bias != 0) {
        MZ_TRY(mz_take_tensor(call, 2, &how.bias));
        MZ_TAKES(how.bias.count >= (uint32_t)window.channels);
    }
    is_real = how.input.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT32;
    if (is_real != 0) {
        MZ_TAKES(how.weights.type == how.input.type && how.output.type == how.input.type);
        MZ_TRY(mz_take_real(call, 7, &how.limits[0]));
        MZ_TRY(mz_take_real(call, 8, &how.limits[1]));
        MZ_TRY(mz_take_int(call, 9, &how.is_wide));
    } else {
        MZ_TAKES(is_narrow(&how.input) && is_narrow(&how.weights) && is_narrow(&how.output));
        MZ_TRY(take_integers(call, &window, &how));
    }
    if (call->checking == 0) {
        mz_window_walk(&window, is_real != 0 ? compute_real : compute_integer, &how);
    }
    return MZ_OK;
}
