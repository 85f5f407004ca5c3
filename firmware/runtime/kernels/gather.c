/* Elements by an index along one axis each. Arguments: input, indices, length of the axis, its
 * stride in the input, extents of the indices, strides of the input along them, that of the axis
 * being 0. The output is as the indices. */
#include "elements.h"
#include "mizzen_memory.h"
#include "strides.h"

mz_status mz_kernel_gather(const mz_call *call);

mz_status mz_kernel_gather(const mz_call *call)
{
    mz_tensor input;
    mz_tensor indices;
    mz_tensor output;
    mz_walk walk;
    uint32_t counts[1];
    int32_t length;
    int32_t stride;
    uint64_t reach;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_take_tensor(call, 1, &indices));
    MZ_TRY(mz_take_int(call, 2, &length));
    MZ_TRY(mz_take_int(call, 3, &stride));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TAKES(length > 0 && stride > 0 && input.type == output.type);
    reach = ((uint64_t)length - 1u) * (uint64_t)stride;
    MZ_TAKES(reach < input.count && mz_is_integer(indices.type) != 0);
    counts[0] = input.count - (uint32_t)reach;
    MZ_TRY(mz_walk_start(call, 4, 1, counts, output.count, &walk));
    MZ_TAKES(mz_walk_count(&walk) == output.count && indices.count == output.count);
    for (i = 0; call->checking == 0 && i < output.count; i++, mz_walk_step(&walk)) {
        const uint32_t bytes = mz_element_bytes(input.type);
        int64_t index = mz_get_integer(&indices, i);
        index += index < 0 ? length : 0;
        if (index < 0 || index >= length) {
            return MZ_ERROR_INDEX;
        }
        memmove((uint8_t *)output.data + (size_t)i * bytes,
                (const uint8_t *)input.data + (size_t)(walk.place[0] + index * stride) * bytes,
                bytes);
    }
    return MZ_OK;
}
