#include "mizzen_kernel.h"
#include "mizzen_memory.h"

static const uint32_t *pool(const mz_context *context, uint32_t at)
{
    const void *start = context->container + context->header->pool_at;
    return (const uint32_t *)start + at;
}

static const mz_argument_row *argument(const mz_call *call, uint32_t place, uint32_t kind)
{
    const void *rows = pool(call->context, call->row->arguments);
    const mz_argument_row *row = (const mz_argument_row *)rows + place;
    return place < call->row->argument_count && row->kind == kind ? row : NULL;
}

mz_status mz_take_tensor(const mz_call *call, uint32_t place, mz_tensor *tensor)
{
    const mz_argument_row *row = argument(call, place, MZ_ARGUMENT_KIND_TENSOR);
    MZ_TAKES(row != NULL && row->low != MZ_NONE);
    mz_tensor_at(call->context, row->low, tensor);
    return MZ_OK;
}

int mz_has(const mz_call *call, uint32_t place)
{
    const mz_argument_row *row = argument(call, place, MZ_ARGUMENT_KIND_TENSOR);
    return row != NULL && row->low != MZ_NONE;
}

static int64_t joined(uint32_t low, uint32_t high)
{
    const uint64_t bits = ((uint64_t)high << 32) | low;
    int64_t number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

mz_status mz_take_number(const mz_call *call, uint32_t place, int64_t *number)
{
    const mz_argument_row *row = argument(call, place, MZ_ARGUMENT_KIND_NUMBER);
    MZ_TAKES(row != NULL);
    *number = joined(row->low, row->high);
    return MZ_OK;
}

mz_status mz_take_int(const mz_call *call, uint32_t place, int32_t *number)
{
    int64_t found;
    MZ_TRY(mz_take_number(call, place, &found));
    MZ_TAKES(found >= INT32_MIN && found <= INT32_MAX);
    *number = (int32_t)found;
    return MZ_OK;
}

mz_status mz_take_real(const mz_call *call, uint32_t place, float *number)
{
    const mz_argument_row *row = argument(call, place, MZ_ARGUMENT_KIND_NUMBER);
    MZ_TAKES(row != NULL);
    memcpy(number, &row->low, sizeof *number);
    return MZ_OK;
}

mz_status mz_take_numbers(const mz_call *call, uint32_t place, mz_numbers *numbers)
{
    const mz_argument_row *row = argument(call, place, MZ_ARGUMENT_KIND_NUMBERS);
    MZ_TAKES(row != NULL);
    numbers->words = pool(call->context, row->low);
    numbers->count = row->high;
    return MZ_OK;
}

mz_status mz_give_tensor(const mz_call *call, uint32_t place, mz_tensor *tensor)
{
    const uint32_t *outputs = pool(call->context, call->row->outputs);
    MZ_TAKES(place < call->row->output_count && outputs[place] != MZ_NONE);
    mz_tensor_at(call->context, outputs[place], tensor);
    return MZ_OK;
}

int64_t mz_number_at(const mz_numbers *numbers, uint32_t place)
{
    return joined(numbers->words[2u * place], numbers->words[2u * place + 1u]);
}
