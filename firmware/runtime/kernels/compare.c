#include "compare.h"

int mz_is_comparison(int32_t operation)
{
    return operation >= MZ_BINARY_EQUAL && operation <= MZ_BINARY_GREATER_EQUAL;
}

int mz_compares(int32_t operation, enum mz_order order)
{
    static const uint8_t orders[] = {
        MZ_ORDER_EQUAL,
        MZ_ORDER_LESS | MZ_ORDER_GREATER | MZ_ORDER_NONE,
        MZ_ORDER_LESS,
        MZ_ORDER_LESS | MZ_ORDER_EQUAL,
        MZ_ORDER_GREATER,
        MZ_ORDER_GREATER | MZ_ORDER_EQUAL,
    };
    return ((uint32_t)orders[operation - MZ_BINARY_EQUAL] & (uint32_t)order) != 0u;
}

enum mz_order mz_order_of_integers(int64_t a, int64_t b)
{
    if (a == b) {
        return MZ_ORDER_EQUAL;
    }
    return a < b ? MZ_ORDER_LESS : MZ_ORDER_GREATER;
}

enum mz_order mz_order_of_reals(float a, float b)
{
    if (a == b) {
        return MZ_ORDER_EQUAL;
    }
    if (a < b) {
        return MZ_ORDER_LESS;
    }
    return a > b ? MZ_ORDER_GREATER : MZ_ORDER_NONE;
}
