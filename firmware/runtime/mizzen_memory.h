/* The only functions that are asked of the firmware: those of C's own library, or the board's. */
#ifndef MIZZEN_MEMORY_H
#define MIZZEN_MEMORY_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);

#endif
