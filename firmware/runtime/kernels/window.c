#include "window.h"

#include "numbers.h"

#define SPAN 7u
#define NUMBERS (3u + 2u * SPAN + 8u)
#define LARGEST_STEP (1 << 20)
#define REACH ((int64_t)1 << 40)

static mz_status make_span(const int32_t numbers[SPAN], mz_span *span)
{
    uint32_t i;
    for (i = 0; i < SPAN; i++) {
        MZ_TAKES(numbers[i] <= LARGEST_STEP && (i == 5u || numbers[i] >= 1));
    }
    span->output = numbers[0];
    span->taps = numbers[1];
    span->input = numbers[2];
    span->stride = numbers[3];
    span->dilation = numbers[4];
    span->pad = numbers[5];
    span->up = numbers[6];
    MZ_TAKES(span->pad >= -LARGEST_STEP);
    return MZ_OK;
}

int mz_reaches(const int32_t extents[], const int32_t strides[], uint32_t axes, uint32_t count)
{
    int64_t last = 0;
    uint32_t i;
    for (i = 0; i < axes; i++) {
        const int64_t reach = ((int64_t)extents[i] - 1) * strides[i];
        if (strides[i] < 0 || reach > REACH) {
            return 0;
        }
        last += reach;
    }
    return last < (int64_t)count;
}

mz_status mz_window_take(const mz_call *call, uint32_t place, const mz_tensor *input,
                         const mz_tensor *output, mz_window *window)
{
    int32_t numbers[NUMBERS];
    int32_t extents[4];
    int64_t outputs;
    uint32_t i;
    MZ_TRY(mz_take_ints(call, place, numbers, NUMBERS));
    window->batches = numbers[0];
    window->channels = numbers[1];
    window->input_channels = numbers[2];
    for (i = 0; i < 3u; i++) {
        MZ_TAKES(numbers[i] >= 1 && numbers[i] <= LARGEST_STEP);
    }
    MZ_TRY(make_span(&numbers[3], &window->rows));
    MZ_TRY(make_span(&numbers[3u + SPAN], &window->columns));
    for (i = 0; i < 4u; i++) {
        window->input[i] = numbers[3u + 2u * SPAN + i];
        window->output[i] = numbers[7u + 2u * SPAN + i];
    }
    extents[0] = window->batches;
    extents[1] = window->rows.input;
    extents[2] = window->columns.input;
    extents[3] = window->input_channels;
    MZ_TAKES(mz_reaches(extents, window->input, 4, input->count));
    extents[1] = window->rows.output;
    extents[2] = window->columns.output;
    extents[3] = window->channels;
    MZ_TAKES(mz_reaches(extents, window->output, 4, output->count));
    outputs = 1;
    for (i = 0; i < 4u; i++) {
        outputs *= extents[i];
        MZ_TAKES(outputs <= (int64_t)output->count);
    }
    MZ_TAKES(outputs == (int64_t)output->count);
    return MZ_OK;
}

/* Where an output's first tap is, before it is divided. */
static int64_t origin(const mz_span *span, int32_t output)
{
    return (int64_t)output * span->stride - span->pad;
}

int32_t mz_span_start(const mz_span *span, int32_t output)
{
    const int64_t first = origin(span, output);
    const int64_t start = first < 0 ? (-first + span->dilation - 1) / span->dilation : 0;
    return start > span->taps ? span->taps : (int32_t)start;
}

int32_t mz_span_end(const mz_span *span, int32_t output)
{
    const int64_t last = ((int64_t)span->input - 1) * span->up - origin(span, output);
    const int64_t end = last < 0 ? 0 : last / span->dilation + 1;
    return end > span->taps ? span->taps : (int32_t)end;
}

int32_t mz_span_at(const mz_span *span, int32_t output, int32_t tap)
{
    const int64_t at = origin(span, output) + (int64_t)tap * span->dilation;
    if (at < 0 || at % span->up != 0 || at / span->up >= span->input) {
        return -1;
    }
    return (int32_t)(at / span->up);
}

void mz_window_walk(const mz_window *window, mz_window_compute *compute, const void *what)
{
    const int32_t *strides = window->output;
    mz_output_at at;
    int32_t batch;
    for (batch = 0; batch < window->batches; batch++) {
        at.batch = (uint32_t)batch;
        for (at.row = 0; at.row < window->rows.output; at.row++) {
            for (at.column = 0; at.column < window->columns.output; at.column++) {
                for (at.channel = 0; at.channel < window->channels; at.channel++) {
                    at.place = (uint32_t)(batch * strides[0] + at.row * strides[1] +
                                          at.column * strides[2] + at.channel * strides[3]);
                    compute(what, window, &at);
                }
            }
        }
    }
}
