/* A compiled network, run by registers on inputs that are linked in; its outputs are written as
 * hexadecimal bytes, one line an inference. `network.h` and `network_data.S` are made by the test. */
#include "npu.h"

#include "network.h"

extern const uint8_t network_stream[], network_constants[], network_inputs[];
static uint8_t arena[NETWORK_ARENA_BYTES] BOARD_ARENA;
static uint8_t fast[NETWORK_FAST_BYTES] BOARD_FAST;
static volatile uint32_t ends;

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);

void board_npu_interrupt(void)
{
    npu_clear();
    ends++;
}

static void write_bytes(const uint8_t *bytes, uint32_t count)
{
    static const char digits[] = "0123456789abcdef";
    char text[3] = {0, 0, 0};
    uint32_t i;
    for (i = 0; i < count; i++) {
        text[0] = digits[bytes[i] >> 4];
        text[1] = digits[bytes[i] & 15u];
        board_write(text);
    }
    board_write("\n");
}

int main(void)
{
    uint32_t run;
    if (npu_reset() != 0) {
        return 2;
    }
    board_npu_interrupt_enable();
    for (run = 0; run < NETWORK_RUNS; run++) {
        (void)memcpy(arena + NETWORK_INPUT_OFFSET, network_inputs + run * NETWORK_INPUT_BYTES,
                     NETWORK_INPUT_BYTES);
        NPU_QBASE = (uint32_t)(uintptr_t)network_stream;
        NPU_QSIZE = NETWORK_STREAM_BYTES;
        NPU_BASEP(0u) = (uint32_t)(uintptr_t)network_constants;
        NPU_BASEP(1u) = (uint32_t)(uintptr_t)arena;
        NPU_BASEP(2u) = NETWORK_FAST_BYTES > 16u ? (uint32_t)(uintptr_t)fast
                                                 : (uint32_t)(uintptr_t)arena;
        npu_start();
        while (ends == run) {
            board_wait_for_event();
        }
        if ((NPU_STATUS & STATUS_END) == 0u) {
            return 3;
        }
        write_bytes(arena + NETWORK_OUTPUT_OFFSET, NETWORK_OUTPUT_BYTES);
    }
    return finish(0);
}
