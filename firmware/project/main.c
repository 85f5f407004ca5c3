/* Executes the model on the example's inputs, and compares what it gives with what it must. */
#include "board.h"
#include "mizzen.h"
#include "mizzen_memory.h"
#include "model.h"

#define SHOWN_ELEMENTS 16u

mz_npu *board_npu(void);

extern const mz_kernel mz_kernels[];

BOARD_ARENA static uint8_t arena[MODEL_ARENA_BYTES];
BOARD_FAST static uint8_t fast[MODEL_FAST_BYTES];
static mz_context model;

static void show_element(const mz_tensor *output, uint32_t place)
{
    const void *data = output->data;
    switch (output->type) {
    case MZ_ELEMENT_TYPE_BOOL:
    case MZ_ELEMENT_TYPE_UINT8:
        board_write_decimal(((const uint8_t *)data)[place]);
        break;
    case MZ_ELEMENT_TYPE_INT8:
        board_write_decimal(((const int8_t *)data)[place]);
        break;
    case MZ_ELEMENT_TYPE_INT16:
        board_write_decimal(((const int16_t *)data)[place]);
        break;
    case MZ_ELEMENT_TYPE_INT32:
        board_write_decimal(((const int32_t *)data)[place]);
        break;
    default: {
        /* Whole words, lowest first: the bits of a real number */
        const uint32_t words = output->bytes / output->count / 4u;
        uint32_t i;
        for (i = 0; i < words; i++) {
            board_write_hex(((const uint32_t *)data)[place * words + i]);
        }
        break;
    }
    }
}

static void show(uint32_t index, const mz_tensor *output)
{
    uint32_t i;
    board_write("output ");
    board_write_decimal((int32_t)index);
    board_write(":");
    for (i = 0; i < output->count && i < SHOWN_ELEMENTS; i++) {
        board_write(" ");
        show_element(output, i);
    }
    board_write(output->count > SHOWN_ELEMENTS ? " ...\n" : "\n");
}

static int differs(const uint8_t *found, const uint8_t *expected, uint32_t bytes)
{
    uint32_t i;
    for (i = 0; i < bytes; i++) {
        if (found[i] != expected[i]) {
            return 1;
        }
    }
    return 0;
}

/* Fill the inputs from bytes of the example; return how many there were of them. */
static uint32_t fill(const uint8_t *bytes)
{
    mz_tensor input;
    uint32_t filled = 0;
    uint32_t i;
    for (i = 0; mz_input(&model, i, &input) == MZ_OK; i++) {
        if (bytes != NULL) {
            memcpy(input.data, bytes + filled, input.bytes);
        } else {
            memset(input.data, 0, input.bytes);
        }
        filled += input.bytes;
    }
    return filled;
}

/* Show the outputs; compare them with bytes of the example, if there are any. */
static uint32_t look(const uint8_t *expected, int *wrong)
{
    mz_tensor output;
    uint32_t seen = 0;
    uint32_t i;
    for (i = 0; mz_output(&model, i, &output) == MZ_OK; i++) {
        show(i, &output);
        if (expected != NULL && differs(output.data, expected + seen, output.bytes) != 0) {
            *wrong = 1;
        }
        seen += output.bytes;
    }
    return seen;
}

static int stop(mz_status status)
{
    board_write("mizzen: step ");
    board_write_decimal((int32_t)model.step);
    board_write(": ");
    board_write(mz_status_text(status));
    board_write("\n");
    return 1;
}

int main(void)
{
    const uint8_t *inputs = EXAMPLE_INFERENCES > 0 ? example_inputs : NULL;
    const uint8_t *outputs = EXAMPLE_INFERENCES > 0 ? example_outputs : NULL;
    int32_t left = EXAMPLE_INFERENCES > 0 ? EXAMPLE_INFERENCES : 1;
    int wrong = 0;
    mz_status status = mz_open(&model, model_container, MODEL_BYTES, arena, sizeof arena, fast,
                               sizeof fast, mz_kernels, board_npu());
    while (status == MZ_OK && left > 0) {
        const uint32_t taken = fill(inputs);
        status = mz_invoke(&model);
        if (status == MZ_OK) {
            const uint32_t given = look(outputs, &wrong);
            if (EXAMPLE_INFERENCES > 0) {
                inputs += taken;
                outputs += given;
            }
            left--;
        }
    }
    if (status != MZ_OK) {
        return stop(status);
    }
    if (EXAMPLE_INFERENCES > 0) {
        board_write(wrong ? "mizzen: other outputs than expected\n" : "mizzen: ok\n");
    }
    return wrong;
}
