#include "mizzen_zephyr.h"

#include <ethosu_driver.h>

#include "mizzen_npu.h"

struct mz_npu {
    char unused;
};

static mz_npu any;

mz_npu *mz_zephyr_npu(void)
{
    return &any;
}

/* The driver compares CONFIG and ID with the payload's itself, at each invocation. */
mz_status mz_npu_check(mz_npu *npu, uint32_t config, uint32_t id)
{
    (void)config;
    (void)id;
    return npu == &any ? MZ_OK : MZ_ERROR_OTHER_NPU;
}

mz_status mz_npu_invoke(mz_npu *npu, const void *payload, uint32_t payload_bytes,
                        const mz_region regions[MZ_REGIONS])
{
    uint64_t addresses[MZ_REGIONS];
    size_t sizes[MZ_REGIONS];
    struct ethosu_driver *driver;
    int status;
    uint32_t i;
    (void)npu;
    for (i = 0; i < MZ_REGIONS; i++) {
        addresses[i] = regions[i].address;
        sizes[i] = regions[i].bytes;
    }
    driver = ethosu_reserve_driver();
    if (driver == NULL) {
        return MZ_ERROR_NPU;
    }
    status = ethosu_invoke_v3(driver, payload, (int)payload_bytes, addresses, sizes,
                              (int)MZ_REGIONS, NULL);
    ethosu_release_driver(driver);
    return status == 0 ? MZ_OK : MZ_ERROR_NPU;
}
