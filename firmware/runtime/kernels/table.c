/* Elements looked up in a table of every value that they can have. Arguments: input of 8 or 16
 * bits, table; an element's bits without a sign are its place there. */
#include "elements.h"
#include "mizzen_memory.h"

mz_status mz_kernel_table(const mz_call *call);

mz_status mz_kernel_table(const mz_call *call)
{
    mz_tensor input;
    mz_tensor table;
    mz_tensor output;
    uint32_t width;
    uint32_t bytes;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_take_tensor(call, 1, &table));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    width = mz_element_bytes(input.type);
    bytes = mz_element_bytes(output.type);
    MZ_TAKES(width <= 2u && table.count == (uint32_t)1 << (8u * width));
    MZ_TAKES(input.count == output.count && table.type == output.type);
    for (i = 0; call->checking == 0 && i < input.count; i++) {
        const uint32_t place = width == 1u ? ((const uint8_t *)input.data)[i]
                                           : ((const uint16_t *)input.data)[i];
        memmove((uint8_t *)output.data + (size_t)i * bytes,
                (const uint8_t *)table.data + (size_t)place * bytes, bytes);
    }
    return MZ_OK;
}
