/* The board's NPU for the runtime, with Arm's core driver. */
#include "ethosu.h"
#include "npu_driver.h"

mz_npu *board_npu(void);

static mz_npu npu;

mz_npu *board_npu(void)
{
    npu.driver = board_ethosu(NULL, 0);
    return npu.driver != NULL ? &npu : NULL;
}
