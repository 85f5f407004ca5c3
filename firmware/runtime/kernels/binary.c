/* Two elements to one. Arguments: an mz_binary, two inputs, extents, strides of each input, and of
 * reals that have limits the least and the greatest. The output is dense; integers wrap at its
 * width. */
#include "compare.h"
#include "elements.h"
#include "strides.h"

mz_status mz_kernel_binary(const mz_call *call);

/* Minimum and maximum keep NaN, whichever side it is on (PyTorch). */
static float real(int32_t operation, float a, float b)
{
    switch (operation) {
    case MZ_BINARY_ADD:
        return a + b;
    case MZ_BINARY_SUBTRACT:
        return a - b;
    case MZ_BINARY_MULTIPLY:
        return a * b;
    case MZ_BINARY_DIVIDE:
        return a / b;
    case MZ_BINARY_MINIMUM:
        return (a < b || a != a) ? a : b;
    case MZ_BINARY_SQUARED_DIFFERENCE:
        return (a - b) * (a - b);
    case MZ_BINARY_SLOPE:
        return a >= 0.0f ? a : a * b;
    default:
        return (a > b || a != a) ? a : b;
    }
}

static int64_t quotient(int32_t operation, int64_t a, int64_t b)
{
    int64_t found;
    if (b == 0) {
        return 0;
    }
    if (b == -1) {
        return (int64_t)(0u - (uint64_t)a);
    }
    found = a / b;
    return operation == MZ_BINARY_FLOOR_DIVIDE && a % b != 0 && (a < 0) != (b < 0) ? found - 1
                                                                                  : found;
}

/* What is left of a division: with the sign of the divisor, or of the dividend. */
static int64_t rest(int32_t operation, int64_t a, int64_t b)
{
    int64_t found;
    if (b == 0 || b == -1) {
        return 0;
    }
    found = a % b;
    return operation == MZ_BINARY_MODULO && found != 0 && (found < 0) != (b < 0) ? found + b : found;
}

static int64_t integer(int32_t operation, int64_t a, int64_t b)
{
    switch (operation) {
    case MZ_BINARY_MODULO:
    case MZ_BINARY_REMAINDER:
        return rest(operation, a, b);
    case MZ_BINARY_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case MZ_BINARY_SUBTRACT:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case MZ_BINARY_MULTIPLY:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case MZ_BINARY_SQUARED_DIFFERENCE:
        return (int64_t)(((uint64_t)a - (uint64_t)b) * ((uint64_t)a - (uint64_t)b));
    case MZ_BINARY_SLOPE:
        return a >= 0 ? a : (int64_t)((uint64_t)a * (uint64_t)b);
    case MZ_BINARY_MINIMUM:
        return a < b ? a : b;
    case MZ_BINARY_MAXIMUM:
        return a > b ? a : b;
    case MZ_BINARY_BITWISE_AND:
        return (int64_t)((uint64_t)a & (uint64_t)b);
    case MZ_BINARY_BITWISE_OR:
        return (int64_t)((uint64_t)a | (uint64_t)b);
    case MZ_BINARY_BITWISE_XOR:
        return (int64_t)((uint64_t)a ^ (uint64_t)b);
    default:
        return quotient(operation, a, b);
    }
}

static int of_reals(int32_t operation)
{
    return (operation <= MZ_BINARY_GREATER_EQUAL && operation != MZ_BINARY_FLOOR_DIVIDE) ||
           operation == MZ_BINARY_SQUARED_DIFFERENCE || operation == MZ_BINARY_SLOPE;
}

/* NaN stays (TFLite, ActivationFunctionWithMinMax). */
static float limited(float value, const float limits[2])
{
    value = value < limits[0] ? limits[0] : value;
    return value > limits[1] ? limits[1] : value;
}

static void compute(int32_t operation, const mz_tensor inputs[2], const mz_tensor *output,
                    mz_walk *walk, const float limits[2])
{
    const int integers = mz_is_integer(inputs[0].type);
    uint32_t i;
    for (i = 0; i < output->count; i++, mz_walk_step(walk)) {
        const uint32_t at[2] = {(uint32_t)walk->place[0], (uint32_t)walk->place[1]};
        if (integers != 0) {
            const int64_t a = mz_get_integer(&inputs[0], at[0]);
            const int64_t b = mz_get_integer(&inputs[1], at[1]);
            mz_put_integer(output, i, mz_is_comparison(operation)
                                          ? mz_compares(operation, mz_order_of_integers(a, b))
                                          : integer(operation, a, b));
        } else {
            const float a = mz_get_real(&inputs[0], at[0]);
            const float b = mz_get_real(&inputs[1], at[1]);
            if (mz_is_comparison(operation)) {
                mz_put_integer(output, i, mz_compares(operation, mz_order_of_reals(a, b)));
            } else {
                const float found = real(operation, a, b);
                mz_put_real(output, i, limits != NULL ? limited(found, limits) : found);
            }
        }
    }
}

mz_status mz_kernel_binary(const mz_call *call)
{
    mz_tensor inputs[2];
    mz_tensor output;
    mz_walk walk;
    uint32_t counts[2];
    float limits[2];
    const int has_limits = call->row->argument_count > 6u;
    int32_t operation;
    MZ_TRY(mz_take_int(call, 0, &operation));
    MZ_TRY(mz_take_tensor(call, 1, &inputs[0]));
    MZ_TRY(mz_take_tensor(call, 2, &inputs[1]));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    counts[0] = inputs[0].count;
    counts[1] = inputs[1].count;
    MZ_TRY(mz_walk_start(call, 3, 2, counts, output.count, &walk));
    MZ_TAKES(mz_walk_count(&walk) == output.count);
    MZ_TAKES(operation >= 0 && operation < (int32_t)MZ_BINARY_COUNT);
    MZ_TAKES(inputs[0].type == inputs[1].type);
    MZ_TAKES(mz_is_integer(inputs[0].type) != 0 || of_reals(operation));
    if (has_limits != 0) {
        MZ_TRY(mz_take_real(call, 6, &limits[0]));
        MZ_TRY(mz_take_real(call, 7, &limits[1]));
    }
    if (call->checking == 0) {
        compute(operation, inputs, &output, &walk, has_limits != 0 ? limits : NULL);
    }
    return MZ_OK;
}
