/* Executes the model on the example's inputs, and compares what it gives with what it must. */
#include "board.h"
#include "model.h"
#include "network.h"

#if defined(MIZZEN_COUNTERS)
#include "npu_counters.h"
#define ROUNDS COUNTERS_ROUNDS
#else
#define ROUNDS 1u
#endif

#define SHOWN_ELEMENTS 16u

static int32_t integer(const void *data, uint32_t place, uint32_t bytes, int is_signed)
{
    switch (bytes) {
    case 1u:
        return is_signed ? ((const int8_t *)data)[place] : ((const uint8_t *)data)[place];
    case 2u:
        return is_signed ? ((const int16_t *)data)[place] : ((const uint16_t *)data)[place];
    default:
        return ((const int32_t *)data)[place];
    }
}

static void show_element(const struct network_tensor *output, uint32_t place)
{
    const uint32_t bytes = output->bytes / output->count;
    const uint32_t words = bytes / 4u;
    uint32_t i;
    if (output->numbers != NETWORK_BITS) {
        const int is_signed = output->numbers == NETWORK_SIGNED;
        board_write_decimal(integer(output->data, place, bytes, is_signed));
        return;
    }
    /* Whole words, lowest first: the bits of a real number */
    for (i = 0; i < words; i++) {
        board_write_hex(((const uint32_t *)output->data)[place * words + i]);
    }
}

static void show(uint32_t index, const struct network_tensor *output)
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
    struct network_tensor input;
    uint32_t filled = 0;
    uint32_t i;
    for (i = 0; network_input(i, &input) == 0; i++) {
        uint8_t *data = input.data;
        uint32_t at;
        for (at = 0; at < input.bytes; at++) {
            data[at] = bytes != NULL ? bytes[filled + at] : 0u;
        }
        filled += input.bytes;
    }
    return filled;
}

/* Show the outputs; compare them with bytes of the example, if there are any. */
static uint32_t look(const uint8_t *expected, int *wrong)
{
    struct network_tensor output;
    uint32_t seen = 0;
    uint32_t i;
    for (i = 0; network_output(i, &output) == 0; i++) {
        show(i, &output);
        if (expected != NULL && differs(output.data, expected + seen, output.bytes) != 0) {
            *wrong = 1;
        }
        seen += output.bytes;
    }
    return seen;
}

/* Execute the example. Return 0, or another number where an inference failed. */
static int execute(int is_first, int *wrong)
{
    const uint8_t *inputs = EXAMPLE_INFERENCES > 0 ? example_inputs : NULL;
    const uint8_t *outputs = EXAMPLE_INFERENCES > 0 ? example_outputs : NULL;
    int32_t left = EXAMPLE_INFERENCES > 0 ? EXAMPLE_INFERENCES : 1;
    while (left > 0) {
        const uint32_t taken = fill(inputs);
        uint32_t given = 0;
        if (network_invoke() != 0) {
            return 1;
        }
        if (is_first != 0) {
            given = look(outputs, wrong);
        }
        if (EXAMPLE_INFERENCES > 0) {
            inputs += taken;
            outputs += given;
        }
        left--;
    }
    return 0;
}

/* Further rounds only count other events: state goes on, so that outputs may be others. */
int BOARD_MAIN(void)
{
    int wrong = 0;
    uint32_t round;
    if (network_open() != 0) {
        return 1;
    }
    for (round = 0; round < ROUNDS; round++) {
        if (execute(round == 0u, &wrong) != 0) {
            return 1;
        }
    }
    if (EXAMPLE_INFERENCES > 0) {
        board_write(wrong ? "mizzen: other outputs than expected\n" : "mizzen: ok\n");
    }
    return wrong;
}
