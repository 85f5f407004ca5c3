/* What the example asks of a board, in the vendor's software: the console, and the NPU by Arm's
 * driver. The header of the board's configuration, which Mizzen makes, has the vendor's names. */
#include "board.h"

#include "ethosu.h"

#include BOARD_SDK_HEADER
#include BOARD_SDK_PRINT_HEADER

void board_write(const char *text)
{
    (void)BOARD_SDK_PRINT("%s", text);
}

void board_write_decimal(int32_t value)
{
    (void)BOARD_SDK_PRINT("%ld", (long)value);
}

void board_write_hex(uint32_t value)
{
    (void)BOARD_SDK_PRINT("0x%08lx", (unsigned long)value);
}

#if defined(BOARD_SDK_NPU_BASE)

static struct ethosu_driver driver;

#if defined(BOARD_SDK_NPU_HANDLER)
void BOARD_SDK_NPU_HANDLER(void);
void BOARD_SDK_NPU_HANDLER(void)
#else
static void npu_interrupt(void)
#endif
{
    ethosu_irq_handler(&driver);
}

struct ethosu_driver *board_ethosu(void *fast, size_t fast_bytes)
{
#if defined(BOARD_SDK_SET_VECTOR)
    BOARD_SDK_SET_VECTOR(BOARD_SDK_NPU_IRQ, (uint32_t)(uintptr_t)npu_interrupt);
#endif
    NVIC_EnableIRQ(BOARD_SDK_NPU_IRQ);
    if (ethosu_init(&driver, (void *)BOARD_SDK_NPU_BASE, fast, fast_bytes, 1, 1) != 0) {
        return NULL;
    }
    return &driver;
}

#else

/* The vendor's software has started the NPU: take its driver, and leave it free for whoever invokes. */
struct ethosu_driver *board_ethosu(void *fast, size_t fast_bytes)
{
    struct ethosu_driver *driver = ethosu_reserve_driver();
    (void)fast;
    (void)fast_bytes;
    if (driver != NULL) {
        ethosu_release_driver(driver);
    }
    return driver;
}

#endif
