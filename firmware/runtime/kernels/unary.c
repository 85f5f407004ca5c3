/* One element to another. Arguments: an mz_unary, input. */
#include "elements.h"
#include "functions.h"

mz_status mz_kernel_unary(const mz_call *call);

static float real(int32_t operation, float value)
{
    switch (operation) {
    case MZ_UNARY_ABSOLUTE:
        return value <= 0.0f ? 0.0f - value : value;
    case MZ_UNARY_NEGATE:
        return -value;
    case MZ_UNARY_SQUARE_ROOT:
        return mz_square_root(value);
    case MZ_UNARY_INVERSE_SQUARE_ROOT:
        return mz_inverse_square_root(value);
    case MZ_UNARY_RECIPROCAL:
        return 1.0f / value;
    case MZ_UNARY_EXPONENTIAL:
        return mz_exponential(value);
    case MZ_UNARY_LOGARITHM:
        return mz_logarithm(value);
    case MZ_UNARY_TANH:
        return mz_tanh(value);
    case MZ_UNARY_SIGMOID:
        return mz_sigmoid(value);
    case MZ_UNARY_FLOOR:
        return mz_floor(value);
    case MZ_UNARY_CEILING:
        return mz_ceiling(value);
    case MZ_UNARY_ROUND:
        return mz_round(value);
    case MZ_UNARY_ERROR_FUNCTION:
        return mz_error_function(value);
    case MZ_UNARY_EXPONENTIAL_LESS_ONE:
        return mz_exponential_less_one(value);
    case MZ_UNARY_LOGARITHM_OF_ONE_AND:
        return mz_logarithm_of_one_and(value);
    case MZ_UNARY_LOGARITHM_TO_2:
        return mz_scaled_logarithm(value, 1.44269504088896340736);
    case MZ_UNARY_LOGARITHM_TO_10:
        return mz_scaled_logarithm(value, 0.434294481903251827651);
    case MZ_UNARY_SINE:
        return mz_sine(value);
    case MZ_UNARY_COSINE:
        return mz_cosine(value);
    case MZ_UNARY_TRUNCATE:
        return mz_truncate(value);
    case MZ_UNARY_ROUND_FROM_FLOOR:
        return value == 0.0f ? value : mz_round(value) + 0.0f;
    default:
        return (float)((value > 0.0f) - (value < 0.0f));
    }
}

static int64_t integer(int32_t operation, int64_t value, int is_bool)
{
    switch (operation) {
    case MZ_UNARY_ABSOLUTE:
        return value < 0 ? (int64_t)(0u - (uint64_t)value) : value;
    case MZ_UNARY_NEGATE:
        return (int64_t)(0u - (uint64_t)value);
    case MZ_UNARY_BITWISE_NOT:
        return is_bool != 0 ? value == 0 : ~value;
    case MZ_UNARY_SIGN:
        return (value > 0) - (value < 0);
    default:
        return value;
    }
}

mz_status mz_kernel_unary(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    int32_t operation;
    uint32_t i;
    MZ_TRY(mz_take_int(call, 0, &operation));
    MZ_TRY(mz_take_tensor(call, 1, &input));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(operation >= 0 && operation < (int32_t)MZ_UNARY_COUNT);
    MZ_TAKES(input.count == output.count && input.type == output.type);
    for (i = 0; call->checking == 0 && i < input.count; i++) {
        if (mz_is_integer(input.type) != 0) {
            const int is_bool = input.type == (uint32_t)MZ_ELEMENT_TYPE_BOOL;
            mz_put_integer(&output, i, integer(operation, mz_get_integer(&input, i), is_bool));
        } else {
            mz_put_real(&output, i, real(operation, mz_get_real(&input, i)));
        }
    }
    return MZ_OK;
}
