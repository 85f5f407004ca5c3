/* Mizzen's C runtime on Zephyr. */
#ifndef MIZZEN_ZEPHYR_H
#define MIZZEN_ZEPHYR_H

#include "mizzen.h"

/* Any NPU of Zephyr's driver: each invocation reserves one, waits for it, and releases it. */
mz_npu *mz_zephyr_npu(void);

#endif
