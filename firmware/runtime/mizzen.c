#include "mizzen.h"

#include "mizzen_kernel.h"
#include "mizzen_memory.h"
#include "mizzen_npu.h"

#define TRY(expression)                       \
    do {                                      \
        const mz_status tried = (expression); \
        if (tried != MZ_OK) {                 \
            return tried;                     \
        }                                     \
    } while (0)

#define REQUIRE(condition, status) \
    do {                           \
        if (!(condition)) {        \
            return (status);       \
        }                          \
    } while (0)

#define SOUND(condition) REQUIRE(condition, MZ_ERROR_DAMAGED)

#define CONFIG_ACTION 1u
#define STREAM_ACTION 2u
#define NOP_ACTION 5u
#define PAYLOAD_MAGIC 0x31504f43u /* COP1 */

static const uint8_t element_bytes[MZ_ELEMENT_TYPE_COUNT] = {1, 1, 1, 2, 2, 4, 4, 8, 4, 8, 8};

static int is_aligned(uintptr_t address)
{
    return address % MZ_FORMAT_ALIGNMENT == 0u;
}

static int fits(uint32_t at, uint64_t bytes, uint32_t limit)
{
    return at <= limit && bytes <= (uint64_t)limit - at;
}

/* Rows of a table whose place mz_open has checked. */
static const void *table(const mz_context *context, uint32_t at)
{
    return context->container + at;
}

/* Weights and constants, whose place mz_open has checked: in the container, or apart from it. */
static const uint8_t *constant(const mz_context *context, uint32_t at)
{
    return context->constants + (at - context->header->constants_at);
}

static int is_constant(const mz_header_row *header, uint32_t at, uint64_t bytes)
{
    return at >= header->constants_at && fits(at, bytes, header->bytes);
}

static const uint32_t *pool(const mz_context *context, uint32_t at)
{
    return (const uint32_t *)table(context, context->header->pool_at) + at;
}

static int in_pool(const mz_context *context, uint32_t at, uint64_t words)
{
    return fits(at, words, context->header->pool_count);
}

static int is_tensor(const mz_context *context, uint32_t index)
{
    return index < context->header->tensors_count;
}

static const mz_tensor_row *tensor_row(const mz_context *context, uint32_t index)
{
    return (const mz_tensor_row *)table(context, context->header->tensors_at) + index;
}

static int is_writable(const mz_context *context, uint32_t index)
{
    return is_tensor(context, index) &&
           tensor_row(context, index)->place == (uint32_t)MZ_PLACE_ARENA;
}

void mz_tensor_at(const mz_context *context, uint32_t index, mz_tensor *tensor)
{
    const mz_tensor_row *row = tensor_row(context, index);
    const uint8_t *data = row->place == (uint32_t)MZ_PLACE_ARENA ? context->arena + row->at
                                                                 : constant(context, row->at);
    tensor->data = (void *)(uintptr_t)data;
    tensor->extents = pool(context, row->extents);
    tensor->scales = (const float *)(const void *)pool(context, row->scales);
    tensor->zero_points = (const int32_t *)(const void *)(pool(context, row->scales) + row->scale_count);
    tensor->bytes = row->bytes;
    tensor->count = row->bytes / element_bytes[row->type];
    tensor->type = row->type;
    tensor->rank = row->rank;
    tensor->scale_count = row->scale_count;
    tensor->axis = row->axis;
}

static mz_status check_tensor(const mz_context *context, const mz_tensor_row *row)
{
    const mz_header_row *header = context->header;
    uint64_t count = 1;
    uint32_t i;
    SOUND(row->place < MZ_PLACE_COUNT && row->type < MZ_ELEMENT_TYPE_COUNT);
    SOUND(row->place == (uint32_t)MZ_PLACE_ARENA ? fits(row->at, row->bytes, header->arena_bytes)
                                                 : is_constant(header, row->at, row->bytes));
    SOUND(is_aligned(row->at) && row->rank <= MZ_MAX_RANK);
    SOUND(in_pool(context, row->extents, row->rank));
    for (i = 0; i < row->rank; i++) {
        count *= pool(context, row->extents)[i];
        SOUND(count <= UINT32_MAX);
    }
    SOUND(count * element_bytes[row->type] == row->bytes);
    SOUND(in_pool(context, row->scales, (uint64_t)row->scale_count * 2u));
    if (row->scale_count > 1u) {
        SOUND(row->axis < row->rank);
        SOUND(pool(context, row->extents)[row->axis] == row->scale_count);
    }
    return MZ_OK;
}

static mz_status check_tensors(const mz_context *context)
{
    uint32_t i;
    for (i = 0; i < context->header->tensors_count; i++) {
        TRY(check_tensor(context, tensor_row(context, i)));
    }
    return MZ_OK;
}

/* A list of tensors in the pool: of any, or of those in the arena or left out. */
static mz_status check_list(const mz_context *context, uint32_t at, uint32_t count, int written)
{
    uint32_t i;
    SOUND(in_pool(context, at, count));
    for (i = 0; i < count; i++) {
        const uint32_t index = pool(context, at)[i];
        SOUND(written != 0 ? (index == MZ_NONE || is_writable(context, index))
                           : is_tensor(context, index));
    }
    return MZ_OK;
}

static mz_status check_copies(const mz_context *context, uint32_t at, uint32_t count,
                              uint32_t limit, int out)
{
    uint32_t i;
    SOUND(in_pool(context, at, (uint64_t)count * 2u));
    for (i = 0; i < count; i++) {
        const uint32_t *pair = pool(context, at) + 2u * i;
        SOUND(out != 0 ? is_writable(context, pair[0]) : is_tensor(context, pair[0]));
        SOUND(fits(pair[1], tensor_row(context, pair[0])->bytes, limit));
    }
    return MZ_OK;
}

mz_status mz_stream_find(const void *payload, uint32_t payload_bytes, mz_stream *stream)
{
    const uint32_t *words = payload;
    const uint32_t count = payload_bytes / 4u;
    uint32_t at = 1;
    SOUND(payload_bytes % 4u == 0u && count > 0u && words[0] == PAYLOAD_MAGIC);
    memset(stream, 0, sizeof *stream);
    while (at < count) {
        const uint32_t word = words[at];
        const uint32_t left = count - at - 1u;
        switch (word & 0xffu) {
        case CONFIG_ACTION:
            SOUND(left >= 2u);
            stream->config = words[at + 1u];
            stream->id = words[at + 2u];
            at += 3u;
            break;
        case STREAM_ACTION: {
            const uint32_t length = (word >> 16) | ((word & 0xff00u) << 8);
            SOUND(length <= left && stream->commands == NULL && (at + 1u) % 4u == 0u);
            stream->commands = (const uint8_t *)(words + at + 1u);
            stream->bytes = length * 4u;
            at += length + 1u;
            break;
        }
        case NOP_ACTION:
            at++;
            break;
        default:
            return MZ_ERROR_DAMAGED;
        }
    }
    SOUND(stream->commands != NULL);
    return MZ_OK;
}

static mz_status check_npu_call(const mz_context *context, const mz_npu_call_row *row)
{
    const mz_header_row *header = context->header;
    mz_stream stream;
    SOUND(is_aligned(row->payload_at));
    SOUND(fits(row->payload_at, row->payload_bytes, header->constants_at));
    SOUND(is_aligned(row->weights_at) && is_constant(header, row->weights_at, row->weights_bytes));
    SOUND(is_aligned(row->scratch_at));
    SOUND(fits(row->scratch_at, row->scratch_bytes, header->arena_bytes));
    SOUND(row->fast_bytes <= header->fast_bytes);
    TRY(mz_stream_find(table(context, row->payload_at), row->payload_bytes, &stream));
    SOUND(stream.config == header->npu_config && stream.id == header->npu_id);
    TRY(check_copies(context, row->copies_in, row->copies_in_count, row->scratch_bytes, 0));
    return check_copies(context, row->copies_out, row->copies_out_count, row->scratch_bytes, 1);
}

static mz_status check_arguments(const mz_context *context, const mz_kernel_call_row *row)
{
    const uint32_t words = (uint32_t)(sizeof(mz_argument_row) / sizeof(uint32_t));
    const mz_argument_row *argument;
    uint32_t i;
    SOUND(in_pool(context, row->arguments, (uint64_t)row->argument_count * words));
    argument = (const mz_argument_row *)(const void *)pool(context, row->arguments);
    for (i = 0; i < row->argument_count; i++, argument++) {
        switch (argument->kind) {
        case MZ_ARGUMENT_KIND_TENSOR:
            SOUND(argument->low == MZ_NONE || is_tensor(context, argument->low));
            break;
        case MZ_ARGUMENT_KIND_NUMBER:
            break;
        case MZ_ARGUMENT_KIND_NUMBERS:
            SOUND(in_pool(context, argument->low, (uint64_t)argument->high * 2u));
            break;
        default:
            return MZ_ERROR_DAMAGED;
        }
    }
    return MZ_OK;
}

/* Execute a kernel call, or only look at its arguments. */
static mz_status call_kernel(const mz_context *context, const mz_kernel_call_row *row, int checking)
{
    const mz_kernel_row *needed = table(context, context->header->kernels_at);
    const mz_kernel *kernel = context->kernels;
    mz_call call;
    while (kernel != NULL && kernel->run != NULL) {
        if (kernel->id == needed[row->kernel].id) {
            call.context = context;
            call.row = row;
            call.checking = checking;
            return kernel->run(&call);
        }
        kernel++;
    }
    return MZ_ERROR_KERNEL;
}

static mz_status check_kernel_call(const mz_context *context, const mz_kernel_call_row *row)
{
    SOUND(row->kernel < context->header->kernels_count);
    TRY(check_arguments(context, row));
    TRY(check_list(context, row->outputs, row->output_count, 1));
    return call_kernel(context, row, 1);
}

static const mz_step_row *step_row(const mz_context *context, uint32_t index)
{
    return (const mz_step_row *)table(context, context->header->steps_at) + index;
}

static const mz_npu_call_row *npu_call_row(const mz_context *context, uint32_t index)
{
    return (const mz_npu_call_row *)table(context, context->header->npu_calls_at) + index;
}

static const mz_kernel_call_row *kernel_call_row(const mz_context *context, uint32_t index)
{
    return (const mz_kernel_call_row *)table(context, context->header->kernel_calls_at) + index;
}

static mz_status check_step(const mz_context *context, const mz_step_row *row)
{
    if (row->kind == (uint32_t)MZ_STEP_KIND_NPU) {
        SOUND(row->index < context->header->npu_calls_count);
        return check_npu_call(context, npu_call_row(context, row->index));
    }
    SOUND(row->kind == (uint32_t)MZ_STEP_KIND_KERNEL);
    SOUND(row->index < context->header->kernel_calls_count);
    return check_kernel_call(context, kernel_call_row(context, row->index));
}

static mz_status check_steps(mz_context *context)
{
    for (context->step = 0; context->step < context->header->steps_count; context->step++) {
        TRY(check_step(context, step_row(context, context->step)));
    }
    context->step = 0;
    return MZ_OK;
}

static mz_status check_states(const mz_context *context)
{
    const mz_state_row *row = table(context, context->header->states_at);
    uint32_t i;
    for (i = 0; i < context->header->states_count; i++, row++) {
        SOUND(is_writable(context, row->read) && is_tensor(context, row->write));
        SOUND(tensor_row(context, row->read)->bytes == tensor_row(context, row->write)->bytes);
        SOUND(is_constant(context->header, row->initial_at,
                          tensor_row(context, row->read)->bytes));
    }
    return MZ_OK;
}

static int is_table(const mz_header_row *header, uint32_t at, uint32_t count, size_t row_bytes)
{
    return at % 4u == 0u && fits(at, (uint64_t)count * row_bytes, header->constants_at);
}

static mz_status check_header(const mz_header_row *header)
{
    const mz_header_row *h = header;
    REQUIRE(h->magic == MZ_FORMAT_MAGIC && h->version == MZ_FORMAT_VERSION, MZ_ERROR_FORMAT);
    SOUND(h->bytes >= sizeof *h && h->constants_at >= sizeof *h && h->constants_at <= h->bytes);
    SOUND(is_aligned(h->constants_at));
    SOUND(is_table(h, h->tensors_at, h->tensors_count, sizeof(mz_tensor_row)));
    SOUND(is_table(h, h->steps_at, h->steps_count, sizeof(mz_step_row)));
    SOUND(is_table(h, h->npu_calls_at, h->npu_calls_count, sizeof(mz_npu_call_row)));
    SOUND(is_table(h, h->kernel_calls_at, h->kernel_calls_count, sizeof(mz_kernel_call_row)));
    SOUND(is_table(h, h->states_at, h->states_count, sizeof(mz_state_row)));
    SOUND(is_table(h, h->kernels_at, h->kernels_count, sizeof(mz_kernel_row)));
    SOUND(is_table(h, h->pool_at, h->pool_count, sizeof(uint32_t)));
    return MZ_OK;
}

static mz_status check_lists(const mz_context *context)
{
    const mz_header_row *header = context->header;
    uint32_t i;
    TRY(check_list(context, header->outputs, header->output_count, 0));
    TRY(check_list(context, header->inputs, header->input_count, 0));
    for (i = 0; i < header->input_count; i++) {
        SOUND(is_writable(context, pool(context, header->inputs)[i]));
    }
    return MZ_OK;
}

/* Memory that a container is opened with, as mz_open takes it. */
typedef struct {
    void *arena;
    size_t arena_bytes;
    void *fast;
    size_t fast_bytes;
} memories;

static mz_status check_start(const void *container, size_t container_bytes)
{
    REQUIRE(container != NULL && is_aligned((uintptr_t)container), MZ_ERROR_MEMORY);
    REQUIRE(container_bytes >= sizeof(mz_header_row), MZ_ERROR_FORMAT);
    return check_header(container);
}

static mz_status opened(mz_context *context, const void *container, const void *constants,
                        const memories *memory, const mz_kernel *kernels, mz_npu *npu)
{
    const mz_header_row *header = container;
    REQUIRE(memory->arena != NULL && is_aligned((uintptr_t)memory->arena), MZ_ERROR_MEMORY);
    REQUIRE(is_aligned((uintptr_t)memory->fast), MZ_ERROR_MEMORY);
    REQUIRE(header->arena_bytes <= memory->arena_bytes, MZ_ERROR_MEMORY);
    REQUIRE(header->fast_bytes <= memory->fast_bytes, MZ_ERROR_MEMORY);
    context->container = container;
    context->constants = constants;
    context->header = header;
    context->arena = memory->arena;
    context->fast = memory->fast;
    context->kernels = kernels;
    context->npu = npu;
    context->step = 0;
    TRY(check_tensors(context));
    TRY(check_lists(context));
    TRY(check_states(context));
    if (header->npu_calls_count > 0u) {
        TRY(mz_npu_check(npu, header->npu_config, header->npu_id));
    }
    TRY(check_steps(context));
    return mz_reset_states(context);
}

mz_status mz_open(mz_context *context, const void *container, size_t container_bytes, void *arena,
                  size_t arena_bytes, void *fast, size_t fast_bytes, const mz_kernel *kernels,
                  mz_npu *npu)
{
    const memories memory = {arena, arena_bytes, fast, fast_bytes};
    const mz_header_row *header = container;
    TRY(check_start(container, container_bytes));
    SOUND(header->bytes <= container_bytes);
    return opened(context, container, (const uint8_t *)container + header->constants_at, &memory,
                  kernels, npu);
}

mz_status mz_open_apart(mz_context *context, const void *program, size_t program_bytes,
                        const void *file, size_t file_bytes, void *arena, size_t arena_bytes,
                        void *fast, size_t fast_bytes, const mz_kernel *kernels, mz_npu *npu)
{
    const memories memory = {arena, arena_bytes, fast, fast_bytes};
    const mz_header_row *header = program;
    const void *constants;
    size_t constants_bytes;
    TRY(check_start(program, program_bytes));
    SOUND(header->constants_at <= program_bytes);
    TRY(mz_file_contents(file, file_bytes, header->program, &constants, &constants_bytes));
    REQUIRE(header->bytes - header->constants_at == constants_bytes, MZ_ERROR_OTHER_FILE);
    return opened(context, program, constants, &memory, kernels, npu);
}

static mz_status listed(const mz_context *context, uint32_t at, uint32_t count, uint32_t index,
                        mz_tensor *tensor)
{
    REQUIRE(index < count, MZ_ERROR_INDEX);
    mz_tensor_at(context, pool(context, at)[index], tensor);
    return MZ_OK;
}

mz_status mz_input(const mz_context *context, uint32_t index, mz_tensor *tensor)
{
    return listed(context, context->header->inputs, context->header->input_count, index, tensor);
}

mz_status mz_output(const mz_context *context, uint32_t index, mz_tensor *tensor)
{
    return listed(context, context->header->outputs, context->header->output_count, index, tensor);
}

/* Copy tensors to their places in scratch memory, or back from there. */
static void copy_all(const mz_context *context, uint32_t at, uint32_t count, uint8_t *scratch,
                     int out)
{
    uint32_t i;
    for (i = 0; i < count; i++) {
        const uint32_t *pair = pool(context, at) + 2u * i;
        mz_tensor tensor;
        mz_tensor_at(context, pair[0], &tensor);
        if (out != 0) {
            memmove(tensor.data, scratch + pair[1], tensor.bytes);
        } else {
            memmove(scratch + pair[1], tensor.data, tensor.bytes);
        }
    }
}

/* Base pointers are set afresh each time: the driver overwrites some. */
static mz_status call_npu(const mz_context *context, const mz_npu_call_row *row)
{
    uint8_t *scratch = context->arena + row->scratch_at;
    uint8_t *fast = row->fast_bytes > 0u ? context->fast : scratch;
    const uint32_t fast_bytes = row->fast_bytes > 0u ? row->fast_bytes : row->scratch_bytes;
    mz_region regions[MZ_REGIONS];
    regions[0].address = (uintptr_t)constant(context, row->weights_at);
    regions[0].bytes = row->weights_bytes;
    regions[1].address = (uintptr_t)scratch;
    regions[1].bytes = row->scratch_bytes;
    regions[2].address = (uintptr_t)fast;
    regions[2].bytes = fast_bytes;
    copy_all(context, row->copies_in, row->copies_in_count, scratch, 0);
    mz_cache_clean(scratch, row->scratch_bytes);
    mz_cache_clean(fast, fast_bytes);
    TRY(mz_npu_invoke(context->npu, table(context, row->payload_at), row->payload_bytes, regions));
    mz_cache_invalidate(scratch, row->scratch_bytes);
    mz_cache_invalidate(fast, fast_bytes);
    copy_all(context, row->copies_out, row->copies_out_count, scratch, 1);
    return MZ_OK;
}

mz_status mz_invoke(mz_context *context)
{
    const mz_state_row *state = table(context, context->header->states_at);
    uint32_t i;
    for (context->step = 0; context->step < context->header->steps_count; context->step++) {
        const mz_step_row *row = step_row(context, context->step);
        if (row->kind == (uint32_t)MZ_STEP_KIND_NPU) {
            TRY(call_npu(context, npu_call_row(context, row->index)));
        } else {
            TRY(call_kernel(context, kernel_call_row(context, row->index), 0));
        }
    }
    for (i = 0; i < context->header->states_count; i++, state++) {
        mz_tensor to;
        mz_tensor from;
        mz_tensor_at(context, state->read, &to);
        mz_tensor_at(context, state->write, &from);
        memmove(to.data, from.data, to.bytes);
    }
    return MZ_OK;
}

mz_status mz_reset_states(mz_context *context)
{
    const mz_state_row *row = table(context, context->header->states_at);
    uint32_t i;
    for (i = 0; i < context->header->states_count; i++, row++) {
        mz_tensor tensor;
        mz_tensor_at(context, row->read, &tensor);
        memcpy(tensor.data, constant(context, row->initial_at), tensor.bytes);
    }
    return MZ_OK;
}
