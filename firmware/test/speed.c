/* What a loop costs, for the benchmark: two instructions a turn. */
#include "npu.h"

void board_npu_interrupt(void)
{
    npu_clear();
}

int main(void)
{
    uint32_t turns = SPEED_TURNS;
    uint32_t run;
    (void)npu_reset();
    npu_point_to_transfer();
    board_npu_interrupt_enable();
    for (run = 0; run < SPEED_RUNS; run++) {
        npu_start();
        board_wait_for_event();
    }
    __asm__ volatile(".balign 4\n1:\tsubs %0, %0, #1\n\tbne 1b" : "+r"(turns) : : "cc");
    return finish((int)turns);
}
