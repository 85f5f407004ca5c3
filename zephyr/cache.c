#include <zephyr/cache.h>

#include "mizzen_npu.h"

void mz_cache_clean(const void *memory, uint32_t bytes)
{
    (void)sys_cache_data_flush_range((void *)(uintptr_t)memory, bytes);
}

void mz_cache_invalidate(const void *memory, uint32_t bytes)
{
    (void)sys_cache_data_invd_range((void *)(uintptr_t)memory, bytes);
}
