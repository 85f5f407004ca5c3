#include "elements.h"

int mz_is_integer(uint32_t type)
{
    return type != (uint32_t)MZ_ELEMENT_TYPE_FLOAT32 && type != (uint32_t)MZ_ELEMENT_TYPE_FLOAT64;
}

uint32_t mz_element_bytes(uint32_t type)
{
    static const uint8_t bytes[MZ_ELEMENT_TYPE_COUNT] = {1, 1, 1, 2, 2, 4, 4, 8, 4, 8, 8};
    return bytes[type];
}

/* Conversion of what does not fit is undefined in C; here it ends at the limits, and NaN is 0. */
static int64_t whole(double value)
{
    const double limit = 9223372036854775808.0;
    if (value != value) {
        return 0;
    }
    if (value >= limit) {
        return INT64_MAX;
    }
    return value <= -limit ? INT64_MIN : (int64_t)value;
}

int64_t mz_get_integer(const mz_tensor *tensor, uint32_t place)
{
    const void *data = tensor->data;
    switch (tensor->type) {
    case MZ_ELEMENT_TYPE_BOOL:
        return ((const uint8_t *)data)[place] != 0u;
    case MZ_ELEMENT_TYPE_UINT8:
        return ((const uint8_t *)data)[place];
    case MZ_ELEMENT_TYPE_INT8:
        return ((const int8_t *)data)[place];
    case MZ_ELEMENT_TYPE_UINT16:
        return ((const uint16_t *)data)[place];
    case MZ_ELEMENT_TYPE_INT16:
        return ((const int16_t *)data)[place];
    case MZ_ELEMENT_TYPE_UINT32:
        return ((const uint32_t *)data)[place];
    case MZ_ELEMENT_TYPE_INT32:
        return ((const int32_t *)data)[place];
    case MZ_ELEMENT_TYPE_FLOAT32:
        return whole((double)((const float *)data)[place]);
    case MZ_ELEMENT_TYPE_FLOAT64:
        return whole(((const double *)data)[place]);
    default:
        return ((const int64_t *)data)[place];
    }
}

void mz_put_integer(const mz_tensor *tensor, uint32_t place, int64_t value)
{
    const uint64_t bits = (uint64_t)value;
    void *data = tensor->data;
    switch (tensor->type) {
    case MZ_ELEMENT_TYPE_BOOL:
        ((uint8_t *)data)[place] = value != 0;
        break;
    case MZ_ELEMENT_TYPE_UINT8:
    case MZ_ELEMENT_TYPE_INT8:
        ((uint8_t *)data)[place] = (uint8_t)bits;
        break;
    case MZ_ELEMENT_TYPE_UINT16:
    case MZ_ELEMENT_TYPE_INT16:
        ((uint16_t *)data)[place] = (uint16_t)bits;
        break;
    case MZ_ELEMENT_TYPE_UINT32:
    case MZ_ELEMENT_TYPE_INT32:
        ((uint32_t *)data)[place] = (uint32_t)bits;
        break;
    case MZ_ELEMENT_TYPE_FLOAT32:
        ((float *)data)[place] = (float)value;
        break;
    case MZ_ELEMENT_TYPE_FLOAT64:
        ((double *)data)[place] = (double)value;
        break;
    default:
        ((uint64_t *)data)[place] = bits;
        break;
    }
}

float mz_get_real(const mz_tensor *tensor, uint32_t place)
{
    if (tensor->type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT32) {
        return ((const float *)tensor->data)[place];
    }
    if (tensor->type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT64) {
        return (float)((const double *)tensor->data)[place];
    }
    return (float)mz_get_integer(tensor, place);
}

void mz_put_real(const mz_tensor *tensor, uint32_t place, float value)
{
    if (tensor->type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT32) {
        ((float *)tensor->data)[place] = value;
    } else if (tensor->type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT64) {
        ((double *)tensor->data)[place] = (double)value;
    } else if (tensor->type == (uint32_t)MZ_ELEMENT_TYPE_BOOL) {
        ((uint8_t *)tensor->data)[place] = value != 0.0f;
    } else {
        mz_put_integer(tensor, place, whole((double)value));
    }
}
