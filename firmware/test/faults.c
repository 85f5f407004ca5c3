/* What a driver gets wrong, and what STATUS says then; a reset makes the NPU work again. */
#include "npu.h"

static int expect(const char *what, uint32_t status)
{
    uint32_t found;
    npu_start();
    found = NPU_STATUS & 0xfffeu;
    board_write(what);
    board_write(": ");
    board_write_hex(found);
    board_write("\n");
    (void)npu_reset();
    npu_point_to_transfer();
    return (found & 0xf03cu) == status ? 0 : 1;
}

int main(void)
{
    static const uint32_t damaged[4] BOARD_MODEL = {0x000003ffu, 0, 0, 0};
    int failures = npu_reset();
    npu_point_to_transfer();
    failures += expect("a transfer", STATUS_END);
    failures += transfer_errors() == 0u ? 0 : 1;

    NPU_QBASE = 0x60000000u;
    failures += expect("queue outside memory", STATUS_BUS_ERROR);
    NPU_BASEP(1u) = 0xfffffff0u;
    failures += expect("target outside memory", 0x9000u | STATUS_BUS_ERROR);
    NPU_BASEP(0u) = 0xfffffff0u;
    failures += expect("source outside memory", 0x4000u | STATUS_BUS_ERROR);
    NPU_BASEP(1u) = (uint32_t)(uintptr_t)&failures & ~15u;
    failures += expect("target in memory of the processor", 0x9000u | STATUS_BUS_ERROR);
    NPU_BASEP(1u) = (uint32_t)(uintptr_t)target + 4u;
    failures += expect("target misaligned", STATUS_BUS_ERROR);
    NPU_QSIZE = 0u;
    failures += expect("empty queue", STATUS_PARSE_ERROR);
    NPU_QSIZE = 8u;
    failures += expect("queue without an end", STATUS_PARSE_ERROR);
    NPU_QBASE = (uint32_t)(uintptr_t)damaged;
    failures += expect("damaged stream", STATUS_PARSE_ERROR);
    failures += expect("a transfer again", STATUS_END);
    failures += transfer_errors() == 0u ? 0 : 1;
    return finish(failures);
}
