/* The first `kept` elements of each row in order, and where they were. Arguments: input, length,
 * inner, kept, whether the largest come first. Equal ones stay in their order. */
#include "elements.h"
#include "rows.h"

mz_status mz_kernel_sort(const mz_call *call);

static int precedes(const mz_tensor *input, uint32_t one, uint32_t other, int descending)
{
    if (mz_is_integer(input->type) != 0) {
        const int64_t a = mz_get_integer(input, one);
        const int64_t b = mz_get_integer(input, other);
        return descending != 0 ? a > b : a < b;
    } else {
        const float a = mz_get_real(input, one);
        const float b = mz_get_real(input, other);
        const int a_is_last = descending != 0 ? b != b : a != a;
        const int b_is_last = descending != 0 ? a != a : b != b;
        if (a_is_last != 0 || b_is_last != 0) {
            return b_is_last != 0 && a_is_last == 0;
        }
        return descending != 0 ? a > b : a < b;
    }
}

/* Insert one element after another into the indices so far, which need `kept` places. */
static void sort(const mz_tensor *input, const mz_rows *rows, uint32_t start, uint32_t kept,
                 int descending, int64_t *order, uint32_t stride)
{
    uint32_t held = 0;
    uint32_t i;
    for (i = 0; i < rows->length; i++) {
        uint32_t at = held < kept ? held : kept;
        while (at > 0u &&
               precedes(input, start + i * rows->inner,
                        start + (uint32_t)order[(at - 1u) * stride] * rows->inner, descending)) {
            if (at < kept) {
                order[at * stride] = order[(at - 1u) * stride];
            }
            at--;
        }
        if (at < kept) {
            order[at * stride] = (int64_t)i;
        }
        if (held < kept) {
            held++;
        }
    }
}

mz_status mz_kernel_sort(const mz_call *call)
{
    mz_tensor input;
    mz_tensor values;
    mz_tensor order;
    mz_rows rows;
    mz_rows sorted;
    int32_t kept;
    int32_t descending;
    uint32_t i;
    uint32_t k;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_rows_take(call, 1, &input, &rows));
    MZ_TRY(mz_take_int(call, 3, &kept));
    MZ_TRY(mz_take_int(call, 4, &descending));
    MZ_TRY(mz_give_tensor(call, 0, &values));
    MZ_TRY(mz_give_tensor(call, 1, &order));
    MZ_TAKES(kept > 0 && (uint32_t)kept <= rows.length);
    MZ_TAKES(order.type == (uint32_t)MZ_ELEMENT_TYPE_INT64 && values.type == input.type);
    MZ_TAKES(order.count == values.count);
    MZ_TAKES(values.count == (uint64_t)rows.count * (uint32_t)kept);
    MZ_TAKES(values.data != input.data && order.data != input.data);
    sorted = rows;
    sorted.length = (uint32_t)kept;
    for (i = 0; call->checking == 0 && i < rows.count; i++) {
        const uint32_t start = mz_row_start(&rows, i);
        const uint32_t target = mz_row_start(&sorted, i);
        sort(&input, &rows, start, (uint32_t)kept, descending, (int64_t *)order.data + target,
             rows.inner);
        for (k = 0; k < (uint32_t)kept; k++) {
            const uint32_t at = target + k * rows.inner;
            const uint32_t from = start + (uint32_t)((int64_t *)order.data)[at] * rows.inner;
            if (mz_is_integer(input.type) != 0) {
                mz_put_integer(&values, at, mz_get_integer(&input, from));
            } else {
                mz_put_real(&values, at, mz_get_real(&input, from));
            }
        }
    }
    return MZ_OK;
}
