/* The processor's data cache for Mizzen's runtime, by CMSIS. Arm's driver has functions of its own. */
#include "board.h"

#include "mizzen_npu.h"

#include BOARD_SDK_HEADER

#if defined(__DCACHE_PRESENT) && (__DCACHE_PRESENT == 1U)

void mz_cache_clean(const void *memory, uint32_t bytes)
{
    SCB_CleanDCache_by_Addr((void *)(uintptr_t)memory, (int32_t)bytes);
}

void mz_cache_invalidate(const void *memory, uint32_t bytes)
{
    SCB_CleanInvalidateDCache_by_Addr((void *)(uintptr_t)memory, (int32_t)bytes);
}

#endif
