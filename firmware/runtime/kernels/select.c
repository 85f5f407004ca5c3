/* One of two elements. Arguments: condition, input if true, input if false, extents, strides of
 * each of them. */
#include "elements.h"
#include "mizzen_memory.h"
#include "strides.h"

mz_status mz_kernel_select(const mz_call *call);

mz_status mz_kernel_select(const mz_call *call)
{
    mz_tensor inputs[3];
    mz_tensor output;
    mz_walk walk;
    uint32_t counts[3];
    uint32_t i;
    for (i = 0; i < 3u; i++) {
        MZ_TRY(mz_take_tensor(call, i, &inputs[i]));
        counts[i] = inputs[i].count;
    }
    MZ_TRY(mz_give_tensor(call, 0, &output));
    MZ_TRY(mz_walk_start(call, 3, 3, counts, output.count, &walk));
    MZ_TAKES(mz_walk_count(&walk) == output.count && mz_element_bytes(inputs[0].type) == 1u);
    MZ_TAKES(inputs[1].type == output.type && inputs[2].type == output.type);
    for (i = 0; call->checking == 0 && i < output.count; i++, mz_walk_step(&walk)) {
        const uint32_t bytes = mz_element_bytes(output.type);
        const uint32_t chosen = ((const uint8_t *)inputs[0].data)[walk.place[0]] != 0u ? 1u : 2u;
        memmove((uint8_t *)output.data + (size_t)i * bytes,
                (const uint8_t *)inputs[chosen].data + (size_t)walk.place[chosen] * bytes, bytes);
    }
    return MZ_OK;
}
