/* SysTick, PendSV, SVC and the cycle counter, as small kernels use them. */
#include "npu.h"

#define SYST_CSR (*(volatile uint32_t *)0xe000e010u)
#define SYST_RVR (*(volatile uint32_t *)0xe000e014u)
#define SYST_CVR (*(volatile uint32_t *)0xe000e018u)
#define ICSR (*(volatile uint32_t *)0xe000ed04u)
#define DEMCR (*(volatile uint32_t *)0xe000edfcu)
#define DWT_CTRL (*(volatile uint32_t *)0xe0001000u)
#define DWT_CYCCNT (*(volatile uint32_t *)0xe0001004u)

static volatile uint32_t ticks, switches, calls;

void SysTick_Handler(void);
void PendSV_Handler(void);
void SVC_Handler(void);

void SysTick_Handler(void)
{
    ticks++;
    ICSR = 1u << 28;
}

void PendSV_Handler(void)
{
    switches++;
}

void SVC_Handler(void)
{
    calls++;
}

int main(void)
{
    uint32_t before;
    int failures = 0;
    DEMCR |= 1u << 24;
    DWT_CTRL |= 1u;
    before = DWT_CYCCNT;
    failures += DWT_CYCCNT - before > 0u ? 0 : 1;

    __asm__ volatile("svc 0" ::: "memory");
    failures += calls == 1u ? 0 : 1;

    SYST_RVR = 24999u;
    SYST_CVR = 0u;
    SYST_CSR = 7u;
    while (ticks < 3u) {
        board_wait_for_interrupt();
    }
    while (ticks < 6u) {
    }
    SYST_CSR = 0u;
    failures += switches >= 3u ? 0 : 1;
    return finish(failures);
}
