/* The NPU's performance counters, in firmware that is built with MIZZEN_COUNTERS: a line for each
 * start of the NPU. Its value says who reads them: 1 for Mizzen's runtime that drives the NPU by its
 * registers, 2 for the callbacks of Arm's driver. */
#ifndef NPU_COUNTERS_H
#define NPU_COUNTERS_H

#include <stdint.h>

#include "board.h"

/* Events, and their numbers, in the order in which they are counted: so many at once, and the next
 * ones in the next inference. Ref: Arm Ethos-U core driver 0.16, its PMU's header (names) and its
 * headers of registers (numbers). */
#if defined(BOARD_NPU_U85)
#define COUNTERS_AT_ONCE 8u
#define COUNTERS_ROUNDS 1u
#define COUNTERS_EVENTS(E)                                                                         \
    E(NPU_ACTIVE, 0x23u)                                                                           \
    E(MAC_ACTIVE, 0x30u)                                                                           \
    E(SRAM_RD_DATA_BEAT_RECEIVED, 0x82u)                                                           \
    E(SRAM_WR_DATA_BEAT_WRITTEN, 0x87u)                                                            \
    E(EXT_RD_DATA_BEAT_RECEIVED, 0x182u)                                                           \
    E(EXT_WR_DATA_BEAT_WRITTEN, 0x187u)                                                            \
    E(WD_ACTIVE, 0x50u)                                                                            \
    E(AO_ACTIVE, 0x40u)
#else
#define COUNTERS_AT_ONCE 4u
#define COUNTERS_ROUNDS 2u
#define COUNTERS_EVENTS(E)                                                                         \
    E(NPU_ACTIVE, 0x23u)                                                                           \
    E(MAC_ACTIVE, 0x30u)                                                                           \
    E(AXI0_RD_DATA_BEAT_RECEIVED, 0x82u)                                                           \
    E(AXI0_WR_DATA_BEAT_WRITTEN, 0x87u)                                                            \
    E(AXI1_RD_DATA_BEAT_RECEIVED, 0x182u)                                                          \
    E(AXI1_WR_DATA_BEAT_WRITTEN, 0x187u)                                                           \
    E(WD_ACTIVE, 0x50u)                                                                            \
    E(AO_ACTIVE, 0x40u)
#endif

/* The cycle counter runs from the first of these to the second. */
#define COUNTERS_FROM 0x23u /* NPU_ACTIVE */
#define COUNTERS_TO 0x20u   /* NPU_IDLE */

/* The number of the event that a counter counts in the next start of the NPU. */
uint32_t npu_counters_event(uint32_t counter);

/* Write the line of a start that has ended: its cycles, and what each counter has. */
void npu_counters_ended(uint64_t cycles, const uint32_t counts[COUNTERS_AT_ONCE]);

#endif
