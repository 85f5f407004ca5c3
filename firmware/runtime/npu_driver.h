/* Drives an Ethos-U by Arm's core driver, of version 0.16 or one that takes the same calls. */
#ifndef MIZZEN_NPU_DRIVER_H
#define MIZZEN_NPU_DRIVER_H

#include "mizzen_npu.h"

struct ethosu_driver;

/* One NPU; ethosu_init has been called for its driver. */
struct mz_npu {
    struct ethosu_driver *driver;
};

#endif
