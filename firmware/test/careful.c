/* A driver that survives what the NPU does wrong: it says what it found, and ends. */
#include "npu.h"

static volatile uint32_t ends;

void board_npu_interrupt(void)
{
    npu_clear();
    ends++;
}

int main(void)
{
    uint32_t status;
    if ((NPU_CONFIG & 15u) != CONFIG_MACS_LOG2) {
        board_write("another NPU than the firmware is for\n");
        return 3;
    }
    if (npu_reset() != 0) {
        return 4;
    }
    npu_point_to_transfer();
    board_npu_interrupt_enable();
    npu_start();
    while (ends == 0u) {
        board_wait_for_event();
    }
    status = NPU_STATUS;
    if ((status & STATUS_END) == 0u) {
        board_write("the NPU failed: ");
        board_write_hex(status & 0xffffu);
        board_write("\n");
        return 5;
    }
    return finish((int)transfer_errors());
}
