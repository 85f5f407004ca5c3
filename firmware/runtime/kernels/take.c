/* Slices of a table by their index: out[o, k, i] is in[o, index[k], i]. Arguments: input, indices,
 * length of the table, inner. An index below 0 counts from the end. */
#include "elements.h"
#include "mizzen_memory.h"

mz_status mz_kernel_take(const mz_call *call);
mz_status mz_kernel_narrow_index(const mz_call *call);

mz_status mz_kernel_take(const mz_call *call)
{
    mz_tensor input;
    mz_tensor indices;
    mz_tensor output;
    int32_t length;
    int32_t inner;
    uint32_t outer;
    uint32_t i;
    uint32_t k;
    uint32_t slice;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_take_tensor(call, 1, &indices));
    MZ_TRY(mz_take_int(call, 2, &length));
    MZ_TRY(mz_take_int(call, 3, &inner));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(length > 0 && inner > 0 && input.type == output.type);
    MZ_TAKES(input.count % ((uint64_t)length * (uint64_t)inner) == 0u);
    outer = input.count / (uint32_t)length / (uint32_t)inner;
    MZ_TAKES(mz_is_integer(indices.type));
    MZ_TAKES(outer == 0u || indices.count <= output.count);
    MZ_TAKES((uint64_t)outer * indices.count <= output.count);
    MZ_TAKES((uint64_t)outer * indices.count * (uint32_t)inner == output.count);
    slice = (uint32_t)inner * mz_element_bytes(input.type);
    for (i = 0; call->checking == 0 && i < outer; i++) {
        for (k = 0; k < indices.count; k++) {
            int64_t index = mz_get_integer(&indices, k);
            index += index < 0 ? length : 0;
            if (index < 0 || index >= length) {
                return MZ_ERROR_INDEX;
            }
            memmove((uint8_t *)output.data + ((size_t)i * indices.count + k) * slice,
                    (const uint8_t *)input.data + ((size_t)i * (uint32_t)length + (size_t)index) * slice,
                    slice);
        }
    }
    return MZ_OK;
}

/* Indices of a table in fewer bits. Arguments: input, size of the table, whether those below 0
 * count from its end. */
mz_status mz_kernel_narrow_index(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    int32_t size;
    int32_t counts_back;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_take_int(call, 1, &size));
    MZ_TRY(mz_take_int(call, 2, &counts_back));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(mz_is_integer(input.type) && mz_is_integer(output.type));
    MZ_TAKES(input.count == output.count && size > 0);
    for (i = 0; call->checking == 0 && i < input.count; i++) {
        int64_t index = mz_get_integer(&input, i);
        index += index < 0 && counts_back != 0 ? size : 0;
        if (index < 0 || index >= size) {
            return MZ_ERROR_INDEX;
        }
        mz_put_integer(&output, i, index);
    }
    return MZ_OK;
}
