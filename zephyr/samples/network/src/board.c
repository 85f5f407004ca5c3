#include "board.h"

#include <zephyr/sys/printk.h>

#include "mizzen_zephyr.h"

mz_npu *board_npu(void);

void board_write(const char *text)
{
    printk("%s", text);
}

void board_write_decimal(int32_t value)
{
    printk("%ld", (long)value);
}

void board_write_hex(uint32_t value)
{
    printk("0x%08lx", (unsigned long)value);
}

mz_npu *board_npu(void)
{
    return mz_zephyr_npu();
}
