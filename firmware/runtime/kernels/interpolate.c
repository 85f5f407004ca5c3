/* Images of another size, between four pixels each. Arguments: input, the numbers of a window whose
 * taps are not used, then for rows and for columns pixels `[2, outputs]` of the input, and how far
 * an output is from the first to the second, then whether sums of reals are kept in double.
 * Distances are reals, or integers of 10 fractional bits where pixels are integers.
 *
 * Ref: TFLite, reference_ops: ResizeBilinear, ResizeBilinearInteger (order of products and sums);
 * PyTorch, upsample_bilinear2d. */
#include "elements.h"
#include "window.h"

#define ONE 1024

mz_status mz_kernel_interpolate(const mz_call *call);

typedef struct {
    const int32_t *pixels;
    mz_tensor distances;
    int32_t count;
} axis;

typedef struct {
    mz_tensor input;
    mz_tensor output;
    axis rows;
    axis columns;
    int32_t is_wide;
} interpolation;

static uint32_t pixel(const interpolation *how, const mz_window *window, const mz_output_at *at,
                      uint32_t corner)
{
    const int32_t row = how->rows.pixels[(corner & 1u) != 0u ? at->row + how->rows.count : at->row];
    const int32_t column =
        how->columns.pixels[(corner & 2u) != 0u ? at->column + how->columns.count : at->column];
    const int32_t last_row = window->rows.input - 1;
    const int32_t last_column = window->columns.input - 1;
    const int32_t y = row < 0 ? 0 : (row > last_row ? last_row : row);
    const int32_t x = column < 0 ? 0 : (column > last_column ? last_column : column);
    return at->batch * (uint32_t)window->input[0] + (uint32_t)(y * window->input[1]) +
           (uint32_t)(x * window->input[2]) + (uint32_t)(at->channel * window->input[3]);
}

static void compute_integer(const void *what, const mz_window *window, const mz_output_at *at)
{
    const interpolation *how = what;
    const int64_t down = mz_get_integer(&how->rows.distances, (uint32_t)at->row);
    const int64_t right = mz_get_integer(&how->columns.distances, (uint32_t)at->column);
    int64_t sum = 0;
    uint32_t corner;
    for (corner = 0; corner < 4u; corner++) {
        const int64_t value = mz_get_integer(&how->input, pixel(how, window, at, corner));
        const int64_t y = (corner & 1u) != 0u ? down : ONE - down;
        const int64_t x = (corner & 2u) != 0u ? right : ONE - right;
        sum = (int64_t)((uint64_t)sum + (uint64_t)value * (uint64_t)y * (uint64_t)x);
    }
    sum = sum > 0 ? sum + ONE * ONE / 2 : sum - ONE * ONE / 2;
    mz_put_integer(&how->output, at->place, sum / (ONE * ONE));
}

static void compute_real(const void *what, const mz_window *window, const mz_output_at *at)
{
    const interpolation *how = what;
    const float down = mz_get_real(&how->rows.distances, (uint32_t)at->row);
    const float right = mz_get_real(&how->columns.distances, (uint32_t)at->column);
    float sum = 0.0f;
    double exact = 0.0;
    uint32_t corner;
    for (corner = 0; corner < 4u; corner++) {
        const float value = mz_get_real(&how->input, pixel(how, window, at, corner));
        const float y = (corner & 1u) != 0u ? down : 1.0f - down;
        const float x = (corner & 2u) != 0u ? right : 1.0f - right;
        if (how->is_wide != 0) {
            exact += (double)value * (double)y * (double)x;
        } else {
            sum += value * y * x;
        }
    }
    mz_put_real(&how->output, at->place, how->is_wide != 0 ? (float)exact : sum);
}

static mz_status take_axis(const mz_call *call, uint32_t place, const mz_span *span, uint32_t type,
                           axis *found)
{
    mz_tensor pixels;
    MZ_TRY(mz_take_tensor(call, place, &pixels));
    MZ_TRY(mz_take_tensor(call, place + 1u, &found->distances));
    found->count = span->output;
    found->pixels = pixels.data;
    MZ_TAKES(pixels.type == (uint32_t)MZ_ELEMENT_TYPE_INT32);
    MZ_TAKES(pixels.count == 2u * (uint32_t)span->output);
    MZ_TAKES(found->distances.type == type);
    MZ_TAKES(found->distances.count == (uint32_t)span->output);
    return MZ_OK;
}

mz_status mz_kernel_interpolate(const mz_call *call)
{
    interpolation how;
    mz_window window;
    int is_real;
    uint32_t type;
    MZ_TRY(mz_take_tensor(call, 0, &how.input));
    MZ_TRY(mz_give_tensor(call, 0, &how.output));
    MZ_TRY(mz_window_take(call, 1, &how.input, &how.output, &window));
    is_real = mz_is_integer(how.input.type) == 0;
    type = is_real != 0 ? (uint32_t)MZ_ELEMENT_TYPE_FLOAT32 : (uint32_t)MZ_ELEMENT_TYPE_INT32;
    MZ_TRY(take_axis(call, 2, &window.rows, type, &how.rows));
    MZ_TRY(take_axis(call, 4, &window.columns, type, &how.columns));
    MZ_TRY(mz_take_int(call, 6, &how.is_wide));
    MZ_TAKES(how.input.type == how.output.type && window.input_channels == window.channels);
    if (call->checking == 0) {
        mz_window_walk(&window, is_real != 0 ? compute_real : compute_integer, &how);
    }
    return MZ_OK;
}
