/* The console of the machine that builds, in place of a board's. */
#ifndef MIZZEN_BOARD_H
#define MIZZEN_BOARD_H

#include <stddef.h>
#include <stdint.h>

#define BOARD_MODEL
#define BOARD_ARENA __attribute__((aligned(16)))

void board_write(const char *text);
void board_write_decimal(int32_t value);

int main(void);

#endif
