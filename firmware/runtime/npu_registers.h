/* Drives an Ethos-U by its registers, without Arm's driver. */
#ifndef MIZZEN_NPU_REGISTERS_H
#define MIZZEN_NPU_REGISTERS_H

#include "mizzen_npu.h"

/* One NPU; firmware fills all but the last two members. Words are written as they are.
 *
 * protection  privileged 1, non-secure 2: as what the NPU is started
 * limits      AXI_LIMIT0 to AXI_LIMIT3 of U55 and U65, MEM_ATTR0 to MEM_ATTR3 of U85
 * ports       AXI_SRAM and AXI_EXT of U85
 * polls       how often to look before the NPU counts as hung
 * wait        called between two looks: waits for an event, or does nothing. NULL to look at once
 * has_interrupt  whether mz_npu_interrupt is called in the NPU's interrupt; else STATUS is polled */
struct mz_npu {
    volatile uint32_t *registers;
    uint32_t protection;
    uint32_t qconfig;
    uint32_t regioncfg;
    uint32_t limits[4];
    uint32_t ports[2];
    uint32_t polls;
    void (*wait)(void);
    int has_interrupt;
    volatile uint32_t status;
    volatile int ended;
};

/* To be called in the NPU's interrupt. */
void mz_npu_interrupt(mz_npu *npu);

#endif
