#include "mizzen_npu.h"

#if defined(__GNUC__)
#define WEAK __attribute__((weak))
#else
#define WEAK
#endif

WEAK void mz_cache_clean(const void *memory, uint32_t bytes)
{
    (void)memory;
    (void)bytes;
}

WEAK void mz_cache_invalidate(const void *memory, uint32_t bytes)
{
    (void)memory;
    (void)bytes;
}
