#include "numbers.h"

mz_status mz_take_ints(const mz_call *call, uint32_t place, int32_t found[], uint32_t count)
{
    mz_numbers numbers;
    uint32_t i;
    MZ_TRY(mz_take_numbers(call, place, &numbers));
    MZ_TAKES(numbers.count == count);
    for (i = 0; i < count; i++) {
        const int64_t number = mz_number_at(&numbers, i);
        MZ_TAKES(number >= INT32_MIN && number <= INT32_MAX);
        found[i] = (int32_t)number;
    }
    return MZ_OK;
}
