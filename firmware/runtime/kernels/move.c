/* Elements from one pattern of strides to another. Arguments: input, its first element, the
 * output's first element, extents, strides of the input, strides of the output. */
#include "elements.h"
#include "mizzen_memory.h"

#define REACH ((int64_t)1 << 40)

mz_status mz_kernel_move(const mz_call *call);

typedef struct {
    uint32_t rank;
    uint32_t extents[MZ_MAX_RANK];
    int64_t from[MZ_MAX_RANK];
    int64_t to[MZ_MAX_RANK];
    uint32_t at[MZ_MAX_RANK];
} pattern;

/* Read strides; whether all that they reach from an element on is in a tensor of `count`. */
static mz_status take_strides(const mz_call *call, uint32_t place, const pattern *walk,
                              int64_t first, uint32_t count, int64_t strides[])
{
    mz_numbers numbers;
    int64_t low = first;
    int64_t high = first;
    uint32_t i;
    MZ_TRY(mz_take_numbers(call, place, &numbers));
    MZ_TAKES(numbers.count == walk->rank && first >= -REACH && first <= REACH);
    for (i = 0; i < walk->rank; i++) {
        int64_t reach;
        strides[i] = mz_number_at(&numbers, i);
        MZ_TAKES(strides[i] >= INT32_MIN && strides[i] <= INT32_MAX);
        reach = strides[i] * ((int64_t)walk->extents[i] - 1);
        MZ_TAKES(reach >= -REACH && reach <= REACH);
        if (reach < 0) {
            low += reach;
        } else {
            high += reach;
        }
    }
    MZ_TAKES(low >= 0 && high < (int64_t)count);
    return MZ_OK;
}

static mz_status take_extents(const mz_call *call, pattern *walk, uint32_t limit, uint64_t *count)
{
    mz_numbers numbers;
    uint32_t i;
    MZ_TRY(mz_take_numbers(call, 3, &numbers));
    MZ_TAKES(numbers.count <= MZ_MAX_RANK);
    walk->rank = numbers.count;
    *count = 1;
    for (i = 0; i < walk->rank; i++) {
        const int64_t extent = mz_number_at(&numbers, i);
        MZ_TAKES(extent >= 0 && extent <= INT32_MAX);
        walk->extents[i] = (uint32_t)extent;
        walk->at[i] = 0;
        *count *= (uint64_t)extent;
        MZ_TAKES(*count <= limit);
    }
    return MZ_OK;
}

/* The last axis is copied as a run where it is dense on both sides. */
static void copy_run(const pattern *walk, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    const uint32_t last = walk->rank - 1u;
    const int64_t stride_to = walk->to[last] * (int64_t)bytes;
    const int64_t stride_from = walk->from[last] * (int64_t)bytes;
    uint32_t i;
    if (walk->to[last] == 1 && walk->from[last] == 1) {
        memmove(to, from, (size_t)walk->extents[last] * bytes);
        return;
    }
    for (i = 0; i < walk->extents[last]; i++) {
        memmove(to + stride_to * (int64_t)i, from + stride_from * (int64_t)i, bytes);
    }
}

static int next(pattern *walk, int64_t *from, int64_t *to)
{
    uint32_t axis = walk->rank - 1u;
    while (axis > 0u) {
        axis--;
        walk->at[axis]++;
        *from += walk->from[axis];
        *to += walk->to[axis];
        if (walk->at[axis] < walk->extents[axis]) {
            return 1;
        }
        *from -= walk->from[axis] * (int64_t)walk->extents[axis];
        *to -= walk->to[axis] * (int64_t)walk->extents[axis];
        walk->at[axis] = 0;
    }
    return 0;
}

mz_status mz_kernel_move(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    pattern walk;
    int64_t from;
    int64_t to;
    uint64_t count;
    uint32_t bytes;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_take_number(call, 1, &from));
    MZ_TRY(mz_take_number(call, 2, &to));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    bytes = mz_element_bytes(input.type);
    MZ_TAKES(bytes == mz_element_bytes(output.type));
    MZ_TRY(take_extents(call, &walk, output.count, &count));
    MZ_TAKES(walk.rank > 0u);
    if (count == 0u) {
        return MZ_OK;
    }
    MZ_TRY(take_strides(call, 4, &walk, from, input.count, walk.from));
    MZ_TRY(take_strides(call, 5, &walk, to, output.count, walk.to));
    if (call->checking != 0) {
        return MZ_OK;
    }
    do {
        copy_run(&walk, (uint8_t *)output.data + to * (int64_t)bytes,
                 (const uint8_t *)input.data + from * (int64_t)bytes, bytes);
    } while (next(&walk, &from, &to) != 0);
    return MZ_OK;
}
