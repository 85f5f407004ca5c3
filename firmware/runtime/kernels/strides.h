/* Walks over tensors by strides. */
#ifndef MIZZEN_STRIDES_H
#define MIZZEN_STRIDES_H

#include "mizzen_kernel.h"

#define MZ_WALKED 3u

/* Places in up to three tensors that go along one pattern of extents. */
typedef struct {
    uint32_t rank;
    uint32_t tensors;
    uint32_t extents[MZ_MAX_RANK];
    uint32_t at[MZ_MAX_RANK];
    int64_t strides[MZ_WALKED][MZ_MAX_RANK];
    int64_t place[MZ_WALKED];
} mz_walk;

/* Read extents, and one list of strides for each of `tensors`, from arguments at `first` on. Every
 * place must be an element of its tensor, of which there are `counts`; there are as many places
 * as `limit` says, or fewer. */
mz_status mz_walk_start(const mz_call *call, uint32_t first, uint32_t tensors,
                        const uint32_t counts[], uint32_t limit, mz_walk *walk);

/* Places of the walk: the product of its extents. */
uint32_t mz_walk_count(const mz_walk *walk);

void mz_walk_step(mz_walk *walk);

#endif
