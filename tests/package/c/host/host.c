/* The runtime as a program of the host, whose NPU is whoever holds the other ends of its pipes.
 *
 * host serve       containers and inputs come over the standard input, outputs go back
 * host apart       likewise, with the constants in a file that comes after the container's program
 * host fuzz N      a container comes, is damaged N times, opened and executed each time
 *
 * Numbers are 32 bits, little-endian. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mizzen.h"
#include "mizzen_npu.h"

extern const mz_kernel mz_kernels[];

struct mz_npu {
    int noise;
};

static uint32_t seed = 1;

static uint32_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

static void receive(void *to, size_t bytes)
{
    if (bytes > 0 && fread(to, 1, bytes, stdin) != bytes) {
        exit(3);
    }
}

static uint32_t receive_word(void)
{
    uint32_t word;
    receive(&word, sizeof word);
    return word;
}

static void send(const void *from, size_t bytes)
{
    if (bytes > 0 && fwrite(from, 1, bytes, stdout) != bytes) {
        exit(4);
    }
}

static void send_word(uint32_t word)
{
    send(&word, sizeof word);
}

/* aligned_alloc wants whole multiples, and the sanitizer is to see the exact end. */
static void *exactly(size_t bytes)
{
    void *found = NULL;
    if (posix_memalign(&found, 16, bytes > 0 ? bytes : 1) != 0) {
        exit(5);
    }
    return found;
}

mz_status mz_npu_check(mz_npu *npu, uint32_t config, uint32_t id)
{
    (void)config;
    (void)id;
    return npu == NULL ? MZ_ERROR_OTHER_NPU : MZ_OK;
}

static mz_status make_noise(const mz_region regions[MZ_REGIONS])
{
    uint32_t i;
    for (i = 1; i < MZ_REGIONS; i++) {
        if (regions[i].bytes > 0) {
            *((volatile uint8_t *)regions[i].address + draw() % regions[i].bytes) = (uint8_t)draw();
            *((volatile uint8_t *)regions[i].address + regions[i].bytes - 1) = 1;
        }
    }
    return MZ_OK;
}

mz_status mz_npu_invoke(mz_npu *npu, const void *payload, uint32_t payload_bytes,
                        const mz_region regions[MZ_REGIONS])
{
    uint32_t i;
    if (npu->noise) {
        return make_noise(regions);
    }
    send_word('N');
    send_word(payload_bytes);
    send(payload, payload_bytes);
    for (i = 0; i < MZ_REGIONS; i++) {
        send_word(regions[i].bytes);
        send((const void *)regions[i].address, regions[i].bytes);
    }
    send_word(regions[2].address == regions[1].address);
    fflush(stdout);
    if (receive_word() != 0) {
        return MZ_ERROR_NPU;
    }
    receive((void *)regions[1].address, regions[1].bytes);
    if (regions[2].address != regions[1].address) {
        receive((void *)regions[2].address, regions[2].bytes);
    }
    return MZ_OK;
}

static void answer(const mz_context *context, mz_status status)
{
    mz_tensor output;
    uint32_t i;
    send_word('S');
    send_word((uint32_t)status);
    send_word(context->step);
    for (i = 0; status == MZ_OK && mz_output(context, i, &output) == MZ_OK; i++) {
        send_word(output.bytes);
        send(output.data, output.bytes);
    }
    send_word(MZ_NONE);
    fflush(stdout);
}

static int serve(int is_apart)
{
    static mz_npu npu;
    mz_context context;
    mz_tensor input;
    const uint32_t bytes = receive_word();
    uint8_t *container = exactly(bytes);
    const uint32_t arena_bytes = receive_word();
    const uint32_t fast_bytes = receive_word();
    uint8_t *arena = exactly(arena_bytes);
    uint8_t *fast = exactly(fast_bytes);
    const uint32_t file_bytes = is_apart ? receive_word() : 0;
    uint8_t *file = exactly(file_bytes);
    mz_status status;
    uint32_t word;
    uint32_t i;
    memset(&context, 0, sizeof context);
    memset(arena, 0xa5, arena_bytes);
    memset(fast, 0xa5, fast_bytes);
    receive(container, bytes);
    receive(file, file_bytes);
    status = is_apart ? mz_open_apart(&context, container, bytes, file, file_bytes, arena,
                                      arena_bytes, fast, fast_bytes, mz_kernels, &npu)
                      : mz_open(&context, container, bytes, arena, arena_bytes, fast, fast_bytes,
                                mz_kernels, &npu);
    send_word((uint32_t)status);
    send_word(context.step);
    fflush(stdout);
    while (status == MZ_OK && (word = receive_word()) != 0) {
        if (word == 2) {
            (void)mz_reset_states(&context);
            continue;
        }
        for (i = 0; mz_input(&context, i, &input) == MZ_OK; i++) {
            receive(input.data, input.bytes);
        }
        answer(&context, mz_invoke(&context));
    }
    free(container);
    free(file);
    free(arena);
    free(fast);
    return 0;
}

/* Change some bytes or words, most of them in the tables at the start. */
static void damage(uint8_t *container, uint32_t bytes, uint32_t tables)
{
    static const uint32_t words[] = {0, 1, 2, 3, 15, 16, 0x7fffffff, 0x80000000, 0xfffffff0, MZ_NONE};
    uint32_t times = 1 + draw() % 4;
    while (times-- > 0) {
        const uint32_t limit = draw() % 8 != 0 ? tables : bytes;
        const uint32_t at = draw() % limit;
        const uint32_t word = draw() % 3 != 0 ? words[draw() % 10] : draw() % (2 * bytes);
        switch (draw() % 3) {
        case 0:
            container[at] ^= (uint8_t)(1u << draw() % 8);
            break;
        case 1:
            container[at] = (uint8_t)draw();
            break;
        default:
            if (at / 4 * 4 + 4 <= bytes) {
                memcpy(container + at / 4 * 4, &word, sizeof word);
            }
            break;
        }
    }
}

static void execute(const uint8_t *container, uint32_t bytes, uint32_t counts[16])
{
    static mz_npu npu = {1};
    mz_context context;
    mz_tensor tensor;
    mz_status status;
    uint32_t i;
    const mz_header_row *header = (const void *)container;
    uint32_t arena_bytes = header->arena_bytes < 1u << 20 ? header->arena_bytes : 1u << 20;
    uint32_t fast_bytes = header->fast_bytes < 1u << 20 ? header->fast_bytes : 1u << 20;
    uint8_t *arena = exactly(arena_bytes);
    uint8_t *fast = exactly(fast_bytes);
    memset(arena, 0x5a, arena_bytes);
    memset(fast, 0x5a, fast_bytes);
    memset(&context, 0, sizeof context);
    status = mz_open(&context, container, bytes, arena, arena_bytes, fast, fast_bytes, mz_kernels,
                     &npu);
    if (status == MZ_OK) {
        for (i = 0; mz_input(&context, i, &tensor) == MZ_OK; i++) {
            memset(tensor.data, (int)draw(), tensor.bytes);
        }
        status = mz_invoke(&context);
    }
    counts[(uint32_t)status % 16]++;
    free(arena);
    free(fast);
}

static int fuzz(uint32_t times)
{
    const uint32_t bytes = receive_word();
    uint8_t *original = exactly(bytes);
    uint32_t counts[16] = {0};
    uint32_t tables;
    uint32_t i;
    seed = receive_word() | 1u;
    receive(original, bytes);
    tables = ((const mz_header_row *)(const void *)original)->pool_at +
             4 * ((const mz_header_row *)(const void *)original)->pool_count;
    for (i = 0; i < times; i++) {
        const uint32_t kept = draw() % 16 != 0 ? bytes : draw() % (bytes + 1);
        uint8_t *container = exactly(kept < sizeof(mz_header_row) ? sizeof(mz_header_row) : kept);
        alarm(20);
        memset(container, 0, sizeof(mz_header_row));
        memcpy(container, original, kept);
        if (kept >= sizeof(mz_header_row)) {
            damage(container, kept, tables < kept ? tables : kept);
        }
        execute(container, kept, counts);
        free(container);
    }
    for (i = 0; i < 16; i++) {
        send_word(counts[i]);
    }
    free(original);
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "fuzz") == 0) {
        return fuzz((uint32_t)atoi(arguments[2]));
    }
    return serve(count == 2 && strcmp(arguments[1], "apart") == 0);
}
