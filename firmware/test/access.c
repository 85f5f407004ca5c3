/* Every form of load and store that compilers make of a register's access: single, double, multiple,
 * narrow, indexed before and behind, ordered, and conditional. */
#include "npu.h"

#define BASE BOARD_NPU_BASE
#define AREA 0x80u /* base pointers keep what is written */
#define CLOBBERED "r0", "r1", "r2", "r4", "r12", "memory", "cc"

static void show(const char *what, uint32_t value)
{
    board_write(what);
    board_write(" ");
    board_write_hex(value);
    board_write("\n");
}

#define LOAD(what, code)                                                                           \
    do {                                                                                           \
        uint32_t value = 0, base = BASE;                                                           \
        __asm__ volatile(code : "=&l"(value), "+l"(base) : "l"(0x20u) : CLOBBERED);                  \
        show(what, value);                                                                         \
        show("  base", base - BASE);                                                               \
    } while (0)

#define STORE(what, code)                                                                          \
    do {                                                                                           \
        uint32_t value = 0xa1b2c3d4u, base = BASE + AREA;                                          \
        __asm__ volatile(code : "+l"(value), "+l"(base) : "l"(0x08u) : CLOBBERED);                   \
        show(what, NPU(AREA));                                                                     \
        show("  next", NPU(AREA + 8u));                                                            \
        show("  base", base - BASE);                                                               \
        NPU(AREA) = 0;                                                                             \
        NPU(AREA + 8u) = 0;                                                                        \
    } while (0)

int main(void)
{
    (void)npu_reset();
    LOAD("ldr", "ldr %0, [%1]");
    LOAD("ldr imm", "ldr %0, [%1, #0x28]");
    LOAD("ldr.w imm", "ldr.w %0, [%1, #0x28]");
    LOAD("ldr neg", "adds %1, #0x40\n\tldr %0, [%1, #-0x40]");
    LOAD("ldr reg", "ldr %0, [%1, %2]");
    LOAD("ldr reg shifted", "ldr.w %0, [%1, %2, lsl #2]");
    LOAD("ldr pre", "ldr %0, [%1, #0x28]!");
    LOAD("ldr post", "ldr %0, [%1], #8");
    LOAD("ldrb", "ldrb %0, [%1, #1]");
    LOAD("ldrb reg", "ldrb %0, [%1, %2]");
    LOAD("ldrh", "ldrh %0, [%1, #2]");
    LOAD("ldrsb", "ldrsb.w %0, [%1, #1]");
    LOAD("ldrsh", "ldrsh.w %0, [%1, #0]");
    LOAD("ldrd", "ldrd %0, r12, [%1, #0x28]\n\tadds %0, %0, r12");
    LOAD("ldm", "mov r4, %1\n\tldmia r4!, {r0, r1}\n\tmov %0, r0\n\tsub %1, r4, #0");
    LOAD("lda", "lda %0, [%1]");
    STORE("str", "str %0, [%1]");
    STORE("str reg", "str %0, [%1, %2]");
    STORE("str pre", "str %0, [%1, #8]!");
    STORE("str post", "str %0, [%1], #8");
    STORE("str post neg", "str %0, [%1], #-4");
    STORE("strb", "strb %0, [%1, #1]");
    STORE("strh", "strh %0, [%1, #2]");
    STORE("strd", "strd %0, %2, [%1, #4]");
    STORE("stl", "stl %0, [%1]");
    STORE("stm", "mov r4, %1\n\tmov r0, %0\n\tmovs r1, #1\n\tmovs r2, #2\n\t"
                 "stmia r4!, {r0, r1, r2}\n\tmov %1, r4");
    STORE("stmdb", "add r4, %1, #12\n\tmov r0, %0\n\tmovs r1, #1\n\tmovs r2, #2\n\t"
                   "stmdb r4!, {r0, r1, r2}\n\tmov %1, r4");
    STORE("strne", "cmp %0, %2\n\titte ne\n\tstrne %0, [%1]\n\taddne %1, #4\n\taddeq %1, #16");
    STORE("streq", "cmp %0, %2\n\tite eq\n\tstreq %0, [%1]\n\taddne %1, #4");
    return finish(0);
}
