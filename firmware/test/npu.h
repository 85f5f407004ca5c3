/* The NPU by its registers, for tests: reset, start, end. Offsets and bits are those of
 * ethosu55_interface.h of Arm's Ethos-U core driver; they are the same on U65 and U85. */
#ifndef MIZZEN_TEST_NPU_H
#define MIZZEN_TEST_NPU_H

#include "board.h"

#define NPU(offset) (*(volatile uint32_t *)(BOARD_NPU_BASE + (offset)))
#define NPU_ID NPU(0x00u)
#define NPU_STATUS NPU(0x04u)
#define NPU_CMD NPU(0x08u)
#define NPU_RESET NPU(0x0cu)
#define NPU_QBASE NPU(0x10u)
#define NPU_QREAD NPU(0x18u)
#define NPU_QCONFIG NPU(0x1cu)
#define NPU_QSIZE NPU(0x20u)
#define NPU_PROT NPU(0x24u)
#define NPU_CONFIG NPU(0x28u)
#define NPU_REGIONCFG NPU(0x3cu)
#define NPU_BASEP(region) NPU(0x80u + 8u * (region))

#define STATUS_RUNNING 0x01u
#define STATUS_IRQ 0x02u
#define STATUS_BUS_ERROR 0x04u
#define STATUS_RESETTING 0x08u
#define STATUS_PARSE_ERROR 0x10u
#define STATUS_END 0x20u
#define CMD_RUN 0x01u
#define CMD_CLEAR 0x02u

/* A transfer of 64 bytes from region 0 to region 1, and the end; the same words on every NPU. */
static const uint32_t stream[] BOARD_MODEL = {
    0x00000130u, 0x00010131u, 0x00004030u, 0x00000000u, 0x00004031u, 0x00000000u,
    0x00004032u, 0x00000040u, 0x00000010u, 0x00000011u, 0xffff0000u, 0x00000000u,
};
#define TRANSFERRED 64u

static const uint8_t source[TRANSFERRED] BOARD_MODEL = {
    3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5,
    0, 2, 8, 8, 4, 1, 9, 7, 1, 6, 9, 3, 9, 9, 3, 7, 5, 1, 0, 5, 8, 2, 0, 9, 7, 4, 9, 4, 4, 5, 9, 2,
};
static uint8_t target[TRANSFERRED] BOARD_ARENA;

/* Reset into the privileged, secure state; 0 if the NPU is there then. */
static inline int npu_reset(void)
{
    uint32_t polls;
    NPU_RESET = 1u;
    for (polls = 0; polls < 1000u; polls++) {
        if ((NPU_STATUS & STATUS_RESETTING) == 0u) {
            NPU_QCONFIG = BOARD_NPU_QCONFIG;
            NPU_REGIONCFG = BOARD_NPU_REGIONCFG;
            return NPU_PROT == 1u ? 0 : 1;
        }
    }
    return 1;
}

static inline void npu_point_to_transfer(void)
{
    NPU_QBASE = (uint32_t)(uintptr_t)stream;
    NPU_QSIZE = sizeof stream;
    NPU_BASEP(0u) = (uint32_t)(uintptr_t)source;
    NPU_BASEP(1u) = (uint32_t)(uintptr_t)target;
}

static inline void npu_start(void)
{
    NPU_CMD = (NPU_CMD & 0xcu) | CMD_RUN;
}

static inline void npu_clear(void)
{
    NPU_CMD = (NPU_CMD & 0xcu) | CMD_CLEAR;
}

/* How many bytes of the transfer are wrong; they are cleared. */
static inline uint32_t transfer_errors(void)
{
    uint32_t errors = 0;
    uint32_t i;
    for (i = 0; i < TRANSFERRED; i++) {
        errors += target[i] != source[i] ? 1u : 0u;
        target[i] = 0xeeu;
    }
    return errors;
}

static inline int finish(int failures)
{
    board_write(failures == 0 ? "mizzen: ok\n" : "wrong\n");
    return failures;
}

#endif
