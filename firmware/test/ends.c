/* Ways to end badly, one a build: what the emulator says about each is tested. */
#include "npu.h"

static volatile uint32_t never;

#if defined(STORM)
void board_npu_interrupt(void)
{
}
#else
void board_npu_interrupt(void)
{
    npu_clear();
}
#endif

int main(void)
{
    (void)npu_reset();
    npu_point_to_transfer();
#if defined(DEADLOCK)
    while (never == 0u) {
        board_wait_for_event();
    }
#elif defined(ASLEEP)
    board_wait_for_interrupt();
#elif defined(LOOP)
    while (never == 0u) {
    }
#elif defined(STORM)
    board_npu_interrupt_enable();
    npu_start();
    while (never == 0u) {
    }
#elif defined(RESTARTS)
    while (never == 0u) {
        npu_start();
        npu_clear();
    }
#elif defined(BAD_LOAD)
    return (int)*(volatile uint32_t *)0x55000000u;
#elif defined(BAD_STORE)
    *(volatile uint16_t *)0x55000000u = 1u;
#elif defined(READ_ONLY)
    *(volatile uint32_t *)0x38000000u = 1u;
#elif defined(BAD_JUMP)
    ((void (*)(void))0x55000001u)();
#elif defined(UNDEFINED)
    __asm__ volatile("udf #7");
#elif defined(BREAKPOINT)
    __asm__ volatile("bkpt 1");
#elif defined(STATUS)
    board_write("mizzen: ok\n");
    return STATUS;
#elif defined(SILENT)
    return 0;
#elif defined(CHATTER)
    while (never == 0u) {
        board_write("again and again and again and again and again and again and again\n");
    }
#endif
    return finish(0);
}
