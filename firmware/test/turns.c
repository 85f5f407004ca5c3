/* How far a loop comes between ticks, without a wait or an access to a device; and whether every
 * load in it is made once. It goes to and fro between two places, each of which holds the address of
 * the other. */
#include "npu.h"

#define SYST_CSR (*(volatile uint32_t *)0xe000e010u)
#define SYST_RVR (*(volatile uint32_t *)0xe000e014u)
#define SYST_CVR (*(volatile uint32_t *)0xe000e018u)
#define TICKS 50u

struct place {
    struct place *other;
    int32_t way;
};

static volatile uint32_t ticks;

void SysTick_Handler(void);

void SysTick_Handler(void)
{
    ticks++;
}

int main(void)
{
    struct place start, end;
    struct place *here = &start;
    int32_t way, balance = 0;
    uint32_t turns = 0u;
    start.other = &end;
    start.way = 1;
    end.other = &start;
    end.way = -1;
    SYST_RVR = 24999u;
    SYST_CVR = 0u;
    SYST_CSR = 7u;
    while (ticks < TICKS) {
        /* The address is in the register that is loaded first. */
        __asm__ volatile("ldrd %0, %1, [%0]" : "+r"(here), "=&r"(way) : : "memory");
        balance += way;
        turns++;
    }
    board_write("turns ");
    board_write_decimal((int32_t)turns);
    board_write("\n");
    return finish(balance == (here == &start ? 0 : 1) ? 0 : 1);
}
