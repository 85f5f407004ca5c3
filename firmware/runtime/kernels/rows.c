#include "rows.h"

mz_status mz_rows_take(const mz_call *call, uint32_t place, const mz_tensor *tensor, mz_rows *rows)
{
    int32_t length;
    int32_t inner;
    uint64_t block;
    MZ_TRY(mz_take_int(call, place, &length));
    MZ_TRY(mz_take_int(call, place + 1u, &inner));
    MZ_TAKES(length > 0 && inner > 0);
    block = (uint64_t)length * (uint64_t)inner;
    MZ_TAKES(tensor->count % block == 0u);
    rows->length = (uint32_t)length;
    rows->inner = (uint32_t)inner;
    rows->count = tensor->count / rows->length;
    return MZ_OK;
}

uint32_t mz_row_start(const mz_rows *rows, uint32_t row)
{
    return row / rows->inner * rows->length * rows->inner + row % rows->inner;
}
