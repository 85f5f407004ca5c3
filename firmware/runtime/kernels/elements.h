/* Elements of tensors, whatever their type. */
#ifndef MIZZEN_ELEMENTS_H
#define MIZZEN_ELEMENTS_H

#include "mizzen_kernel.h"

int mz_is_integer(uint32_t type);
uint32_t mz_element_bytes(uint32_t type);

/* An element of an integer type; of a real type, its whole part. 64 bits without a sign wrap. */
int64_t mz_get_integer(const mz_tensor *tensor, uint32_t place);
/* Kept to the bits that the type has; a number is true if it is not 0. */
void mz_put_integer(const mz_tensor *tensor, uint32_t place, int64_t value);
float mz_get_real(const mz_tensor *tensor, uint32_t place);
void mz_put_real(const mz_tensor *tensor, uint32_t place, float value);

#endif
