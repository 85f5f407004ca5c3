#include "board.h"

/* Arm Semihosting for AArch32 and AArch64: operations. */
#define SYS_WRITE0 0x04u
#define SYS_EXIT_EXTENDED 0x20u
#define APPLICATION_EXIT 0x20026u

/* Armv8-M Architecture Reference Manual: NVIC_ISER0, NVIC_ICER0, SCB registers. */
#define NVIC_ISER ((volatile uint32_t *)0xe000e100u)
#define NVIC_ICER ((volatile uint32_t *)0xe000e180u)

static uint32_t semihost(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

#if defined(BOARD_CONSOLE_SEMIHOSTING)

void board_write(const char *text)
{
    (void)semihost(SYS_WRITE0, text);
}

#else

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART_BASE + (offset)))

#if defined(BOARD_UART_CMSDK)
/* Arm Cortex-M System Design Kit TRM, APB UART. */
#define UART_DATA UART(0x00u)
#define UART_FULL (UART(0x04u) & 1u)

static void uart_start(void)
{
    UART(0x10u) = 16u; /* smallest divisor */
    UART(0x08u) = 1u;  /* transmit */
}

#else
/* Arm PrimeCell UART (PL011) TRM. */
#define UART_DATA UART(0x00u)
#define UART_FULL (UART(0x18u) & 0x20u)

static void uart_start(void)
{
    UART(0x30u) = 0u;
    UART(0x24u) = 1u;     /* divisor, whole part */
    UART(0x2cu) = 0x70u;  /* 8 bits, FIFO */
    UART(0x30u) = 0x101u; /* enable, transmit */
}

#endif

void board_write(const char *text)
{
    static int started;
    if (!started) {
        uart_start();
        started = 1;
    }
    for (; *text != '\0'; text++) {
        while (UART_FULL != 0u) {
        }
        UART_DATA = (uint32_t)(unsigned char)*text;
    }
}

#endif

void board_write_decimal(int32_t value)
{
    char text[12];
    size_t at = sizeof text - 1u;
    uint32_t rest = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
    text[at] = '\0';
    do {
        text[--at] = (char)('0' + (char)(rest % 10u));
        rest /= 10u;
    } while (rest != 0u);
    if (value < 0) {
        text[--at] = '-';
    }
    board_write(&text[at]);
}

void board_write_hex(uint32_t value)
{
    static const char digits[] = "0123456789abcdef";
    char text[11];
    int i;
    text[0] = '0';
    text[1] = 'x';
    for (i = 0; i < 8; i++) {
        text[2 + i] = digits[(value >> (28 - 4 * i)) & 15u];
    }
    text[10] = '\0';
    board_write(text);
}

void board_exit(int status)
{
    uint32_t block[2];
    block[0] = APPLICATION_EXIT;
    block[1] = (uint32_t)status;
    (void)semihost(SYS_EXIT_EXTENDED, block);
    for (;;) {
        board_wait_for_interrupt();
    }
}

void board_npu_interrupt_enable(void)
{
    NVIC_ISER[BOARD_NPU_IRQ / 32] = 1u << (BOARD_NPU_IRQ % 32);
}

void board_npu_interrupt_disable(void)
{
    NVIC_ICER[BOARD_NPU_IRQ / 32] = 1u << (BOARD_NPU_IRQ % 32);
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

void board_interrupts_disable(void)
{
    __asm__ volatile("cpsid i" ::: "memory");
}

void board_interrupts_enable(void)
{
    __asm__ volatile("cpsie i\n\tisb" ::: "memory");
}

void board_wait_for_event(void)
{
    __asm__ volatile("dsb\n\twfe" ::: "memory");
}

void board_wait_for_interrupt(void)
{
    __asm__ volatile("dsb\n\twfi" ::: "memory");
}
