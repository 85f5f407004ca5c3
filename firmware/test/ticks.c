/* SysTick, PendSV and SVC, as small kernels use them. */
#include "npu.h"

#define SYST_CSR (*(volatile uint32_t *)0xe000e010u)
#define SYST_RVR (*(volatile uint32_t *)0xe000e014u)
#define SYST_CVR (*(volatile uint32_t *)0xe000e018u)
#define ICSR (*(volatile uint32_t *)0xe000ed04u)

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
    int failures = 0;
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
