#include "npu_driver.h"

#include <ethosu_driver.h>

/* The driver compares CONFIG and ID with the payload's itself, at each invocation. */
mz_status mz_npu_check(mz_npu *npu, uint32_t config, uint32_t id)
{
    (void)config;
    (void)id;
    return npu != NULL && npu->driver != NULL ? MZ_OK : MZ_ERROR_OTHER_NPU;
}

mz_status mz_npu_invoke(mz_npu *npu, const void *payload, uint32_t payload_bytes,
                        const mz_region regions[MZ_REGIONS])
{
    uint64_t addresses[MZ_REGIONS];
    size_t sizes[MZ_REGIONS];
    uint32_t i;
    for (i = 0; i < MZ_REGIONS; i++) {
        addresses[i] = regions[i].address;
        sizes[i] = regions[i].bytes;
    }
    if (ethosu_invoke_v3(npu->driver, payload, (int)payload_bytes, addresses, sizes,
                         (int)MZ_REGIONS, NULL) != 0) {
        return MZ_ERROR_NPU;
    }
    return MZ_OK;
}
