/* What the runtime asks of an NPU: one source has it, by its registers or by Arm's driver. */
#ifndef MIZZEN_NPU_H
#define MIZZEN_NPU_H

#include "mizzen.h"

#define MZ_REGIONS 3u

/* Memory behind a base pointer. */
typedef struct {
    uintptr_t address;
    uint32_t bytes;
} mz_region;

/* What a driver payload holds. */
typedef struct {
    const uint8_t *commands;
    uint32_t bytes;
    uint32_t config;
    uint32_t id;
} mz_stream;

/* Take a driver payload apart. It must be aligned to 16 bytes. */
mz_status mz_stream_find(const void *payload, uint32_t payload_bytes, mz_stream *stream);

/* Whether the NPU is the one that CONFIG and ID describe. */
mz_status mz_npu_check(mz_npu *npu, uint32_t config, uint32_t id);

/* Execute a payload, whose form has been checked, to its end. */
mz_status mz_npu_invoke(mz_npu *npu, const void *payload, uint32_t payload_bytes,
                        const mz_region regions[MZ_REGIONS]);

/* Called around each invocation for memory that the NPU shares with the processor. Those here do
 * nothing; firmware of a processor with a data cache defines its own. */
void mz_cache_clean(const void *memory, uint32_t bytes);
void mz_cache_invalidate(const void *memory, uint32_t bytes);

#endif
