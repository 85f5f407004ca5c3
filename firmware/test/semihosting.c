/* What firmware may ask of a debugger: the console; not the host's files. */
#include "npu.h"

static uint32_t ask(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static uint32_t open(const char *name, uint32_t mode)
{
    uint32_t block[3];
    uint32_t length = 0;
    while (name[length] != '\0') {
        length++;
    }
    block[0] = (uint32_t)(uintptr_t)name;
    block[1] = mode;
    block[2] = length;
    return ask(1u, block);
}

int main(void)
{
    static const char text[] = "by a handle\n";
    static const char letter = '!';
    uint32_t block[3];
    int failures = 0;
    failures += open("/etc/passwd", 0u) == 0xffffffffu ? 0 : 1;
    failures += open("notes.txt", 4u) == 0xffffffffu ? 0 : 1;
    block[0] = open(":tt", 4u);
    failures += block[0] == 0xffffffffu ? 1 : 0;
    block[1] = (uint32_t)(uintptr_t)text;
    block[2] = sizeof text - 1u;
    failures += ask(5u, block) == 0u ? 0 : 1;
    (void)ask(4u, "by a text\n");
    (void)ask(3u, &letter);
    (void)ask(4u, "\n");
    block[0] = (uint32_t)(uintptr_t) "reboot";
    block[1] = 6u;
    failures += ask(0x12u, block) == 0xffffffffu ? 0 : 1;
    return finish(failures);
}
