/* Integers of one scale as those of another. Arguments: input, its zero point, multiplier, shift,
 * the output's zero point, low, high. Ref: TFLite, reference_ops::Requantize. */
#include "elements.h"
#include "fixed_point.h"

mz_status mz_kernel_rescale(const mz_call *call);

mz_status mz_kernel_rescale(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    int32_t numbers[6];
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    for (i = 0; i < 6u; i++) {
        MZ_TRY(mz_take_int(call, i + 1u, &numbers[i]));
    }
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(mz_is_integer(input.type) && mz_is_integer(output.type));
    MZ_TAKES(input.count == output.count && numbers[2] >= -31 && numbers[2] <= 31);
    for (i = 0; call->checking == 0 && i < input.count; i++) {
        const int64_t centred = mz_get_integer(&input, i) - numbers[0];
        int64_t found = mz_scale((int32_t)centred, numbers[1], numbers[2]);
        found += numbers[3];
        found = found < numbers[4] ? numbers[4] : found;
        mz_put_integer(&output, i, found > numbers[5] ? numbers[5] : found);
    }
    return MZ_OK;
}
