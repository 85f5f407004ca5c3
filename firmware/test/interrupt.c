/* The NPU's end by interrupt: asleep, looking at memory, with interrupts masked, and by STATUS. */
#include "npu.h"

static volatile uint32_t ends;

void board_npu_interrupt(void)
{
    npu_clear();
    ends++;
}

static int count(uint32_t expected, const char *how)
{
    uint32_t errors = transfer_errors();
    board_write(how);
    board_write(": ends ");
    board_write_decimal((int32_t)ends);
    board_write(", errors ");
    board_write_decimal((int32_t)errors);
    board_write("\n");
    return ends == expected && errors == 0u ? 0 : 1;
}

int main(void)
{
    int failures = npu_reset();
    npu_point_to_transfer();
    board_npu_interrupt_enable();

    board_interrupts_disable();
    npu_start();
    while (ends < 1u) {
        board_interrupts_enable();
        board_wait_for_event();
        board_interrupts_disable();
    }
    board_interrupts_enable();
    failures += count(1u, "asleep");

    npu_start();
    while (ends < 2u) {
    }
    failures += count(2u, "looking");

    board_interrupts_disable();
    npu_start();
    board_wait_for_interrupt();
    failures += ends == 2u ? 0 : 1;
    board_interrupts_enable();
    while (ends < 3u) {
    }
    failures += count(3u, "masked");

    board_npu_interrupt_disable();
    npu_start();
    while ((NPU_STATUS & STATUS_RUNNING) != 0u) {
    }
    failures += (NPU_STATUS & (STATUS_END | STATUS_IRQ)) == (STATUS_END | STATUS_IRQ) ? 0 : 1;
    failures += NPU_QREAD == 44u ? 0 : 1;
    npu_clear();
    failures += (NPU_STATUS & STATUS_IRQ) == 0u ? 0 : 1;
    failures += count(3u, "by status");
    return finish(failures);
}
