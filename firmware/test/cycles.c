/* Counters of cycles: the processor's, which runs, and the NPU's, which counts what a run takes. */
#include "npu.h"

#define DEMCR (*(volatile uint32_t *)0xe000edfcu)
#define DWT_CTRL (*(volatile uint32_t *)0xe0001000u)
#define DWT_CYCCNT (*(volatile uint32_t *)0xe0001004u)

/* Counters of U55 and U65. */
#define PMCR NPU(0x180u)
#define PMCNTENSET NPU(0x184u)
#define PMCCNTR NPU(0x1a0u)
#define PMEVCNTR0 NPU(0x300u)
#define PMEVTYPER0 NPU(0x380u)
#define CYCLE_COUNTER (1u << 31)
#define EVENT_NPU_ACTIVE 0x23u

int main(void)
{
    uint32_t before, once;
    int failures = npu_reset();
    DEMCR |= 1u << 24;
    DWT_CTRL |= 1u;
    before = DWT_CYCCNT;
    failures += DWT_CYCCNT - before > 0u ? 0 : 1;

    PMCR = 7u; /* count, from zero */
    PMCNTENSET = CYCLE_COUNTER | 1u;
    PMEVTYPER0 = EVENT_NPU_ACTIVE;
    npu_point_to_transfer();
    npu_start();
    npu_clear();
    once = PMCCNTR;
    npu_start();
    npu_clear();
    board_write("cycles ");
    board_write_decimal((int32_t)once);
    board_write("\n");
    failures += once > 0u && PMCCNTR == 2u * once && PMEVCNTR0 == 2u * once ? 0 : 1;
    PMCR = 5u; /* cycles from zero */
    failures += PMCCNTR == 0u && PMEVCNTR0 == 2u * once ? 0 : 1;
    return finish(failures);
}
