/* Interrupts among each other: order by priority, preemption, masks, and the thread's own stack.
 * What happens is written as letters; the vector table is one in memory. */
#include "npu.h"

#define VTOR (*(volatile uint32_t *)0xe000ed08u)
#define ICSR (*(volatile uint32_t *)0xe000ed04u)
#define NVIC_ISER ((volatile uint32_t *)0xe000e100u)
#define NVIC_ISPR ((volatile uint32_t *)0xe000e200u)
#define NVIC_IPR ((volatile uint8_t *)0xe000e400u)
#define FIRST 40u /* interrupts that no device of the board raises here */

static volatile uint32_t table[16 + BOARD_INTERRUPTS] __attribute__((aligned(1024)));
static volatile char text[128];
static volatile uint32_t length;
static uint32_t stack[128] __attribute__((aligned(8)));

static void say(char letter)
{
    text[length] = letter;
    length++;
}

static void pend(uint32_t number)
{
    NVIC_ISPR[(FIRST + number) / 32u] = 1u << ((FIRST + number) % 32u);
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

static void low(void)
{
    say('a');
    pend(1u);
    say('A');
}

static void high(void)
{
    say('b');
    pend(2u);
    say('B');
}

static void equal(void)
{
    say('c');
    say('C');
}

static void call(void)
{
    say('s');
}

static void late(void)
{
    say('p');
}

static void within(void)
{
    say('[');
    pend(2u);
    __asm__ volatile("svc 0" ::: "memory");
    say(']');
}

/* One piece of assembly: the compiler must not use the stack pointer while it is another. */
static void on_own_stack(void)
{
    __asm__ volatile("msr psp, %0\n\tmovs r0, #2\n\tmsr control, r0\n\tisb\n\t"
                     "blx %1\n\tmovs r0, #0\n\tmsr control, r0\n\tisb"
                     :
                     : "r"(&stack[128]), "r"(within)
                     : "r0", "r1", "r2", "r3", "r12", "lr", "memory", "cc");
}

int main(void)
{
    static const uint8_t priorities[3] = {0xc0u, 0x40u, 0x40u};
    static void (*const handlers[3])(void) = {low, high, equal};
    const uint32_t *old = (const uint32_t *)(uintptr_t)VTOR;
    uint32_t i, masked;
    for (i = 0; i < 16u + BOARD_INTERRUPTS; i++) {
        table[i] = old[i];
    }
    for (i = 0; i < 3u; i++) {
        table[16u + FIRST + i] = (uint32_t)(uintptr_t)handlers[i];
        NVIC_IPR[FIRST + i] = priorities[i];
        NVIC_ISER[(FIRST + i) / 32u] = 1u << ((FIRST + i) % 32u);
    }
    table[11] = (uint32_t)(uintptr_t)call;
    table[14] = (uint32_t)(uintptr_t)late;
    *(volatile uint32_t *)0xe000ed20u = 0x00ff0000u; /* PendSV comes last */
    VTOR = (uint32_t)(uintptr_t)table;

    pend(0u);
    say(' ');
    board_interrupts_disable();
    pend(2u);
    pend(1u);
    say('(');
    board_interrupts_enable();
    say(')');
    masked = 0x80u;
    __asm__ volatile("msr basepri, %0" ::"r"(masked) : "memory");
    ICSR = 1u << 28;
    pend(2u);
    say('<');
    masked = 0u;
    __asm__ volatile("msr basepri, %0\n\tisb" ::"r"(masked) : "memory");
    for (i = 0; i < 1000u; i++) {
        __asm__ volatile("");
        (void)ICSR;
    }
    say('>');
    on_own_stack();
    text[length] = '\0';
    board_write((const char *)text);
    board_write("\n");
    return finish(0);
}
