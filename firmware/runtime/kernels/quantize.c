/* Real numbers to integers and back. Arguments: input, scales, zero points, inner, [low, high,]
 * way. Element i has the scale i / inner mod their number; a quantising scale is the factor that
 * the way asks for. */
#include "elements.h"

#define TWO_TO_22 4194304.0f
#define TWO_TO_31 2147483648.0f

mz_status mz_kernel_quantize(const mz_call *call);
mz_status mz_kernel_dequantize(const mz_call *call);

typedef struct {
    mz_tensor input;
    mz_tensor output;
    mz_tensor scales;
    mz_tensor points;
    int32_t inner;
    int32_t way;
} quantization;

static mz_status take(const mz_call *call, quantization *found, uint32_t way)
{
    MZ_TRY(mz_take_tensor(call, 0, &found->input));
    MZ_TRY(mz_take_tensor(call, 1, &found->scales));
    MZ_TRY(mz_take_tensor(call, 2, &found->points));
    MZ_TRY(mz_take_int(call, 3, &found->inner));
    MZ_TRY(mz_take_int(call, way, &found->way));
    MZ_TRY(mz_give_tensor(call, 0, &found->output));
    MZ_TAKES(found->input.count == found->output.count && found->inner > 0);
    MZ_TAKES(found->scales.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT32);
    MZ_TAKES(found->points.type == (uint32_t)MZ_ELEMENT_TYPE_INT32);
    MZ_TAKES(found->scales.count > 0u && found->points.count == found->scales.count);
    return MZ_OK;
}

static uint32_t channel(const quantization *found, uint32_t place)
{
    return place / (uint32_t)found->inner % found->scales.count;
}

static float half_to_even(float value)
{
    const float magic = 1.5f * 2.0f * TWO_TO_22;
    if (value >= -TWO_TO_22 && value <= TWO_TO_22) {
        return value + magic - magic;
    }
    return value != value ? 0.0f : value;
}

/* What 32 bits do not hold becomes the least that they do, and overflows where a zero point below 0
 * is added: the host's kernel does so. */
static float half_away(float value)
{
    float cut;
    if (!(value >= -TWO_TO_31 && value < TWO_TO_31)) {
        return -TWO_TO_31;
    }
    if (!(value >= -2.0f * TWO_TO_22 && value <= 2.0f * TWO_TO_22)) {
        return value;
    }
    cut = (float)(int32_t)value;
    if (value - cut >= 0.5f) {
        return cut + 1.0f;
    }
    return value - cut <= -0.5f ? cut - 1.0f : cut;
}

/* way 0: times the factor, half to even (PyTorch, quantize_per_tensor); 1: divided by it, half
 * away from zero (TFLite, AffineQuantize). */
mz_status mz_kernel_quantize(const mz_call *call)
{
    quantization found;
    int32_t low;
    int32_t high;
    uint32_t i;
    MZ_TRY(take(call, &found, 6));
    MZ_TRY(mz_take_int(call, 4, &low));
    MZ_TRY(mz_take_int(call, 5, &high));
    MZ_TAKES(found.input.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT32);
    MZ_TAKES(mz_is_integer(found.output.type) && low <= high);
    for (i = 0; call->checking == 0 && i < found.input.count; i++) {
        const uint32_t at = channel(&found, i);
        const float value = mz_get_real(&found.input, i);
        const float scale = mz_get_real(&found.scales, at);
        const float point = mz_get_real(&found.points, at);
        const float rounded =
            found.way == 0 ? half_to_even(value * scale) : half_away(value / scale);
        const float shifted = rounded + point;
        int64_t whole = low;
        if (found.way != 0 && rounded <= -TWO_TO_31 && point < 0.0f) {
            whole = high;
        } else if (shifted >= (float)high) {
            whole = high;
        } else if (shifted > (float)low) {
            whole = (int64_t)shifted;
        } else {
            /* at or below the lower limit */
        }
        mz_put_integer(&found.output, i, whole);
    }
    return MZ_OK;
}

/* way 0: the zero point is taken away as a real number (PyTorch); 1: as an integer (TFLite). */
mz_status mz_kernel_dequantize(const mz_call *call)
{
    quantization found;
    uint32_t i;
    MZ_TRY(take(call, &found, 4));
    MZ_TAKES(mz_is_integer(found.input.type));
    MZ_TAKES(found.output.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT32);
    for (i = 0; call->checking == 0 && i < found.input.count; i++) {
        const uint32_t at = channel(&found, i);
        const int64_t value = mz_get_integer(&found.input, i);
        const int64_t point = mz_get_integer(&found.points, at);
        const float centred = found.way == 0 ? (float)value - (float)point : (float)(value - point);
        mz_put_real(&found.output, i, centred * mz_get_real(&found.scales, at));
    }
    return MZ_OK;
}
