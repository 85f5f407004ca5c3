/* Lists of numbers that kernels take. */
#ifndef MIZZEN_NUMBERS_H
#define MIZZEN_NUMBERS_H

#include "mizzen_kernel.h"

/* Read a list of exactly so many integers of 32 bits. */
mz_status mz_take_ints(const mz_call *call, uint32_t place, int32_t found[], uint32_t count);

#endif
