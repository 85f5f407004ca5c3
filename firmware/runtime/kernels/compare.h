/* Comparisons of two numbers, by how they are ordered. */
#ifndef MIZZEN_COMPARE_H
#define MIZZEN_COMPARE_H

#include "mizzen_kernel.h"

/* How one number is ordered to another; one of them is NaN in what is unordered. */
enum mz_order {
    MZ_ORDER_LESS = 1,
    MZ_ORDER_EQUAL = 2,
    MZ_ORDER_GREATER = 4,
    MZ_ORDER_NONE = 8
};

/* Whether an mz_binary is a comparison, and whether that holds of an order. */
int mz_is_comparison(int32_t operation);
int mz_compares(int32_t operation, enum mz_order order);

enum mz_order mz_order_of_integers(int64_t a, int64_t b);
enum mz_order mz_order_of_reals(float a, float b);

#endif
