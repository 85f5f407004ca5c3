#include "strides.h"

#define REACH ((int64_t)1 << 40)

static mz_status read_strides(const mz_call *call, uint32_t place, uint32_t count, mz_walk *walk,
                              uint32_t tensor)
{
    mz_numbers strides;
    int64_t low = 0;
    int64_t high = 0;
    uint32_t i;
    MZ_TRY(mz_take_numbers(call, place, &strides));
    MZ_TAKES(strides.count == walk->rank);
    for (i = 0; i < walk->rank; i++) {
        const int64_t stride = mz_number_at(&strides, i);
        int64_t reach;
        MZ_TAKES(stride >= INT32_MIN && stride <= INT32_MAX);
        reach = stride * ((int64_t)walk->extents[i] - 1);
        MZ_TAKES(reach >= -REACH && reach <= REACH);
        walk->strides[tensor][i] = stride;
        if (reach < 0) {
            low += reach;
        } else {
            high += reach;
        }
    }
    MZ_TAKES(mz_walk_count(walk) == 0u || (low == 0 && high < (int64_t)count));
    walk->place[tensor] = 0;
    return MZ_OK;
}

mz_status mz_walk_start(const mz_call *call, uint32_t first, uint32_t tensors,
                        const uint32_t counts[], uint32_t limit, mz_walk *walk)
{
    mz_numbers extents;
    uint64_t count = 1;
    uint32_t i;
    MZ_TRY(mz_take_numbers(call, first, &extents));
    MZ_TAKES(extents.count <= MZ_MAX_RANK);
    walk->rank = extents.count;
    walk->tensors = tensors;
    for (i = 0; i < walk->rank; i++) {
        const int64_t extent = mz_number_at(&extents, i);
        MZ_TAKES(extent >= 0 && extent <= INT32_MAX);
        walk->extents[i] = (uint32_t)extent;
        walk->at[i] = 0;
        count *= (uint64_t)extent;
        MZ_TAKES(count <= limit);
    }
    for (i = 0; i < tensors; i++) {
        MZ_TRY(read_strides(call, first + 1u + i, counts[i], walk, i));
    }
    return MZ_OK;
}

uint32_t mz_walk_count(const mz_walk *walk)
{
    uint32_t count = 1;
    uint32_t i;
    for (i = 0; i < walk->rank; i++) {
        count *= walk->extents[i];
    }
    return count;
}

void mz_walk_step(mz_walk *walk)
{
    uint32_t axis = walk->rank;
    while (axis > 0u) {
        uint32_t i;
        axis--;
        walk->at[axis]++;
        for (i = 0; i < walk->tensors; i++) {
            walk->place[i] += walk->strides[i][axis];
        }
        if (walk->at[axis] < walk->extents[axis]) {
            return;
        }
        for (i = 0; i < walk->tensors; i++) {
            walk->place[i] -= walk->strides[i][axis] * (int64_t)walk->extents[axis];
        }
        walk->at[axis] = 0;
    }
}
