/* Softmax of real numbers along rows. Arguments: input, length, inner, beta, whether its
 * logarithm is wanted. */
#include "elements.h"
#include "functions.h"
#include "rows.h"

mz_status mz_kernel_softmax(const mz_call *call);

static void softmax(const mz_tensor *input, const mz_rows *rows, uint32_t start, float beta,
                    int as_logarithm, const mz_tensor *output)
{
    float most = mz_get_real(input, start);
    double sum = 0.0;
    uint32_t i;
    for (i = 1; i < rows->length; i++) {
        const float value = mz_get_real(input, start + i * rows->inner);
        most = value > most ? value : most;
    }
    for (i = 0; i < rows->length; i++) {
        const uint32_t at = start + i * rows->inner;
        const float below = (mz_get_real(input, at) - most) * beta;
        const float power = mz_exponential(below);
        sum += (double)power;
        mz_put_real(output, at, as_logarithm != 0 ? below : power);
    }
    for (i = 0; i < rows->length; i++) {
        const uint32_t at = start + i * rows->inner;
        const float value = mz_get_real(output, at);
        mz_put_real(output, at, as_logarithm != 0 ? value - mz_logarithm((float)sum)
                                                  : value / (float)sum);
    }
}

mz_status mz_kernel_softmax(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    mz_rows rows;
    float beta;
    int32_t as_logarithm;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_rows_take(call, 1, &input, &rows));
    MZ_TRY(mz_take_real(call, 3, &beta));
    MZ_TRY(mz_take_int(call, 4, &as_logarithm));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(input.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT32 && output.type == input.type);
    MZ_TAKES(output.count == input.count);
    for (i = 0; call->checking == 0 && i < rows.count; i++) {
        softmax(&input, &rows, mz_row_start(&rows, i), beta, as_logarithm, &output);
    }
    return MZ_OK;
}
