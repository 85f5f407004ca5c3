/* Elements in another type. Argument: input. */
#include "elements.h"

mz_status mz_kernel_cast(const mz_call *call);

mz_status mz_kernel_cast(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(input.count == output.count);
    for (i = 0; call->checking == 0 && i < input.count; i++) {
        if (mz_is_integer(input.type) != 0) {
            mz_put_integer(&output, i, mz_get_integer(&input, i));
        } else if (output.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT64 &&
                   input.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT64) {
            ((double *)output.data)[i] = ((const double *)input.data)[i];
        } else {
            mz_put_real(&output, i, mz_get_real(&input, i));
        }
    }
    return MZ_OK;
}
