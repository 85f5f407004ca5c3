/* Sums along rows, of reals in double (PyTorch). Arguments: input, length, inner, whether each sum leaves its own element out,
 * whether sums go from the end. */
#include "elements.h"
#include "rows.h"

mz_status mz_kernel_scan(const mz_call *call);

static void scan(const mz_tensor *input, const mz_rows *rows, uint32_t start, int exclusive,
                 int backwards, const mz_tensor *output)
{
    uint64_t whole = 0;
    double real = 0.0;
    uint32_t i;
    for (i = 0; i < rows->length; i++) {
        const uint32_t place = backwards != 0 ? rows->length - 1u - i : i;
        const uint32_t at = start + place * rows->inner;
        if (mz_is_integer(input->type) != 0) {
            const uint64_t value = (uint64_t)mz_get_integer(input, at);
            mz_put_integer(output, at, (int64_t)(exclusive != 0 ? whole : whole + value));
            whole += value;
        } else {
            const double value = (double)mz_get_real(input, at);
            mz_put_real(output, at, (float)(exclusive != 0 ? real : real + value));
            real += value;
        }
    }
}

mz_status mz_kernel_scan(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    mz_rows rows;
    int32_t exclusive;
    int32_t backwards;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_rows_take(call, 1, &input, &rows));
    MZ_TRY(mz_take_int(call, 3, &exclusive));
    MZ_TRY(mz_take_int(call, 4, &backwards));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(output.count == input.count);
    for (i = 0; call->checking == 0 && i < rows.count; i++) {
        scan(&input, &rows, mz_row_start(&rows, i), exclusive, backwards, &output);
    }
    return MZ_OK;
}
