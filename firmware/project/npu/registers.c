/* The board's NPU, driven by its registers. */
#include "board.h"
#include "npu_registers.h"

/* Times that the processor wakes up and finds the NPU still busy. */
#define LOOKS 100000000u

mz_npu *board_npu(void);

static mz_npu npu;

mz_npu *board_npu(void)
{
    npu.registers = (volatile uint32_t *)BOARD_NPU_BASE;
    npu.protection = 1; /* privileged, secure */
    npu.qconfig = BOARD_NPU_QCONFIG;
    npu.regioncfg = BOARD_NPU_REGIONCFG;
#if defined(BOARD_NPU_U85)
    npu.limits[0] = BOARD_NPU_MEM_ATTR0;
    npu.limits[1] = BOARD_NPU_MEM_ATTR1;
    npu.limits[2] = BOARD_NPU_MEM_ATTR2;
    npu.limits[3] = BOARD_NPU_MEM_ATTR3;
    npu.ports[0] = BOARD_NPU_AXI_SRAM;
    npu.ports[1] = BOARD_NPU_AXI_EXT;
#else
    npu.limits[0] = BOARD_NPU_AXI_LIMIT0;
    npu.limits[1] = BOARD_NPU_AXI_LIMIT1;
    npu.limits[2] = BOARD_NPU_AXI_LIMIT2;
    npu.limits[3] = BOARD_NPU_AXI_LIMIT3;
#endif
    npu.polls = LOOKS;
    npu.wait = board_wait_for_event;
    npu.has_interrupt = 1;
    board_npu_interrupt_enable();
    return &npu;
}

void board_npu_interrupt(void)
{
    mz_npu_interrupt(&npu);
}
