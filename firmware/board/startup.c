/* From reset to main: vectors, floating point, memory, and what no handler was written for. */
#include "board.h"

extern unsigned char __stack_top[], __data_start[], __data_end[], __bss_start[], __bss_end[];
extern const unsigned char __data_load[];

typedef void (*handler)(void);

/* Constructors of C++. */
extern const handler __init_array_start[], __init_array_end[];

struct vectors {
    const void *stack;
    handler exceptions[15];
    handler interrupts[BOARD_INTERRUPTS];
};

void Reset_Handler(void);
void board_start(void);
void board_unexpected(void);

#define WEAK __attribute__((weak, alias("board_unexpected")))
void NMI_Handler(void) WEAK;
void HardFault_Handler(void) WEAK;
void MemManage_Handler(void) WEAK;
void BusFault_Handler(void) WEAK;
void UsageFault_Handler(void) WEAK;
void SecureFault_Handler(void) WEAK;
void SVC_Handler(void) WEAK;
void DebugMon_Handler(void) WEAK;
void PendSV_Handler(void) WEAK;
void SysTick_Handler(void) WEAK;
void board_npu_interrupt(void) WEAK;

__attribute__((section(".vectors"), used)) static const struct vectors vectors = {
    __stack_top,
    {
        Reset_Handler, NMI_Handler, HardFault_Handler, MemManage_Handler, BusFault_Handler,
        UsageFault_Handler, SecureFault_Handler, 0, 0, 0, SVC_Handler, DebugMon_Handler, 0,
        PendSV_Handler, SysTick_Handler,
    },
    {
#if BOARD_NPU_IRQ > 0
        [0 ... BOARD_NPU_IRQ - 1] = board_unexpected,
#endif
        [BOARD_NPU_IRQ] = board_npu_interrupt,
#if BOARD_NPU_IRQ + 1 < BOARD_INTERRUPTS
        [BOARD_NPU_IRQ + 1 ... BOARD_INTERRUPTS - 1] = board_unexpected,
#endif
    },
};

/* Compilers may use floating-point and vector registers anywhere in C, so they are on before any.
 * CPACR: full access to CP10 and CP11 (Armv8-M Architecture Reference Manual). */
__attribute__((naked, used)) void Reset_Handler(void)
{
    __asm__ volatile("cpsid i\n\t"
                     "ldr r0, =0xe000ed88\n\t"
                     "ldr r1, [r0]\n\t"
                     "orr r1, r1, #0x00f00000\n\t"
                     "str r1, [r0]\n\t"
                     "dsb\n\t"
                     "isb\n\t"
                     "b board_start\n\t"
                     ".ltorg");
}

__attribute__((used, noreturn)) void board_start(void)
{
    unsigned char *at;
    const unsigned char *from = __data_load;
    const handler *constructor;
    *(volatile uint32_t *)0xe000ed08u = (uint32_t)(uintptr_t)&vectors; /* VTOR */
    if (from != __data_start) {
        for (at = __data_start; at != __data_end; at++) {
            *at = *from++;
        }
    }
    for (at = __bss_start; at != __bss_end; at++) {
        *at = 0;
    }
    for (constructor = __init_array_start; constructor != __init_array_end; constructor++) {
        (*constructor)();
    }
    board_interrupts_enable();
    board_exit(main());
}

__attribute__((used)) void board_unexpected(void)
{
    uint32_t exception;
    __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
    board_write("unexpected exception ");
    board_write_decimal((int32_t)exception);
    board_write("\n");
    board_exit(128);
}
