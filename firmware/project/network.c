/* The model on Mizzen's C runtime: five calls, from mz_open on. */
#include "network.h"

#include "board.h"
#include "mizzen.h"
#include "model.h"

mz_npu *board_npu(void);

extern const mz_kernel mz_kernels[];

BOARD_ARENA static uint8_t arena[MODEL_ARENA_BYTES];
BOARD_FAST static uint8_t fast[MODEL_FAST_BYTES];
static mz_context model;

/* The model is linked, or lies in flash by itself. */
#if defined(BOARD_MODEL_ADDRESS)
#define MODEL ((const uint8_t *)BOARD_MODEL_ADDRESS)
#else
#define MODEL model_container
#endif

static int said(mz_status status)
{
    if (status == MZ_OK) {
        return 0;
    }
    board_write("mizzen: step ");
    board_write_decimal((int32_t)model.step);
    board_write(": ");
    board_write(mz_status_text(status));
    board_write("\n");
    return 1;
}

/* A file that lies apart is checked first: one that is not for this firmware is never used. */
#if defined(MODEL_FILE_ADDRESS)
#define FILE ((const void *)MODEL_FILE_ADDRESS)
#endif

static mz_status opened(void)
{
#if defined(MODEL_INTERFACE)
    const void *container;
    size_t bytes;
    const mz_status status =
        mz_file_contents(FILE, MODEL_FILE_ROOM, MODEL_INTERFACE, &container, &bytes);
    return status != MZ_OK ? status
                           : mz_open(&model, container, bytes, arena, sizeof arena, fast,
                                     sizeof fast, mz_kernels, board_npu());
#elif defined(MODEL_FILE_ADDRESS)
    return mz_open_apart(&model, model_container, MODEL_BYTES, FILE, MODEL_FILE_ROOM, arena,
                         sizeof arena, fast, sizeof fast, mz_kernels, board_npu());
#else
    return mz_open(&model, MODEL, MODEL_BYTES, arena, sizeof arena, fast, sizeof fast, mz_kernels,
                   board_npu());
#endif
}

int network_open(void)
{
    return said(opened());
}

int network_invoke(void)
{
    return said(mz_invoke(&model));
}

static enum network_numbers numbers_of(uint32_t type)
{
    switch (type) {
    case MZ_ELEMENT_TYPE_BOOL:
    case MZ_ELEMENT_TYPE_UINT8:
        return NETWORK_UNSIGNED;
    case MZ_ELEMENT_TYPE_INT8:
    case MZ_ELEMENT_TYPE_INT16:
    case MZ_ELEMENT_TYPE_INT32:
        return NETWORK_SIGNED;
    default:
        return NETWORK_BITS;
    }
}

static int filled(mz_status status, const mz_tensor *found, struct network_tensor *tensor)
{
    if (status != MZ_OK) {
        return 1;
    }
    tensor->data = found->data;
    tensor->bytes = found->bytes;
    tensor->count = found->count;
    tensor->numbers = numbers_of(found->type);
    return 0;
}

int network_input(uint32_t index, struct network_tensor *tensor)
{
    mz_tensor found;
    const mz_status status = mz_input(&model, index, &found);
    return filled(status, &found, tensor);
}

int network_output(uint32_t index, struct network_tensor *tensor)
{
    mz_tensor found;
    const mz_status status = mz_output(&model, index, &found);
    return filled(status, &found, tensor);
}
