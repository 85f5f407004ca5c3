#include "board.h"

#include <stdio.h>

void board_write(const char *text)
{
    (void)fputs(text, stdout);
}

void board_write_decimal(int32_t value)
{
    (void)printf("%ld", (long)value);
}
