/* Elements in another type. Arguments: input, way of reals that the type does not hold. Way 0: they
 * are the least integer of 32 bits, or of 64, cut to the type (PyTorch on x86); 1: the closest of
 * the type, and NaN is 0 (TFLite). */
#include "elements.h"

#define TWO_TO_31 2147483648.0
#define TWO_TO_63 9223372036854775808.0

mz_status mz_kernel_cast(const mz_call *call);

static double real_at(const mz_tensor *tensor, uint32_t place)
{
    return tensor->type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT64
               ? ((const double *)tensor->data)[place]
               : (double)((const float *)tensor->data)[place];
}

static int64_t cut(double value, uint32_t bytes)
{
    const double limit = bytes == 8u ? TWO_TO_63 : TWO_TO_31;
    if (value > -limit - (bytes == 8u ? 0.0 : 1.0) && value < limit) {
        return (int64_t)value;
    }
    return bytes == 8u ? INT64_MIN : INT32_MIN;
}

static int64_t closest(double value, uint32_t type)
{
    const uint32_t bits = 8u * mz_element_bytes(type);
    const int has_sign = type == (uint32_t)MZ_ELEMENT_TYPE_INT8 ||
                         type == (uint32_t)MZ_ELEMENT_TYPE_INT16 ||
                         type == (uint32_t)MZ_ELEMENT_TYPE_INT32;
    const int64_t least = has_sign != 0 ? -((int64_t)1 << (bits - 1u)) : 0;
    const int64_t most = least + ((int64_t)1 << bits) - 1;
    if (value != value) {
        return 0;
    }
    if (value >= (double)most) {
        return most;
    }
    return value <= (double)least ? least : (int64_t)value;
}

static int64_t whole(double value, int32_t way, uint32_t type)
{
    if (type == (uint32_t)MZ_ELEMENT_TYPE_BOOL) {
        return value != 0.0;
    }
    return way != 0 && mz_element_bytes(type) < 8u ? closest(value, type)
                                                   : cut(value, mz_element_bytes(type));
}

mz_status mz_kernel_cast(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    int32_t way;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_take_int(call, 1, &way));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(input.count == output.count);
    for (i = 0; call->checking == 0 && i < input.count; i++) {
        if (mz_is_integer(input.type) != 0) {
            mz_put_integer(&output, i, mz_get_integer(&input, i));
        } else if (output.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT64 &&
                   input.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT64) {
            ((double *)output.data)[i] = ((const double *)input.data)[i];
        } else if (mz_is_integer(output.type) != 0) {
            mz_put_integer(&output, i, whole(real_at(&input, i), way, output.type));
        } else {
            mz_put_real(&output, i, mz_get_real(&input, i));
        }
    }
    return MZ_OK;
}
