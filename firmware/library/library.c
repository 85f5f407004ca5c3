/* The runtime and all of its kernels as a library of a host, which has no NPU.
 *
 * All memory is the caller's: a context of mz_library_context_bytes(), a container and an arena,
 * each aligned to 16 bytes. Calls of one context must not run at the same time. */
#include "mizzen.h"
#include "mizzen_npu.h"

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

extern const mz_kernel mz_kernels[];

/* Where a tensor is, and its size. */
typedef struct {
    void *data;
    uint64_t bytes;
} mz_library_tensor;

mz_status mz_npu_check(mz_npu *npu, uint32_t config, uint32_t id)
{
    (void)npu;
    (void)config;
    (void)id;
    return MZ_ERROR_OTHER_NPU;
}

mz_status mz_npu_invoke(mz_npu *npu, const void *payload, uint32_t payload_bytes,
                        const mz_region regions[MZ_REGIONS])
{
    (void)npu;
    (void)payload;
    (void)payload_bytes;
    (void)regions;
    return MZ_ERROR_NPU;
}

EXPORTED uint32_t mz_library_context_bytes(void)
{
    return (uint32_t)sizeof(mz_context);
}

EXPORTED int mz_library_open(mz_context *context, const void *container, size_t container_bytes,
                             void *arena, size_t arena_bytes)
{
    return (int)mz_open(context, container, container_bytes, arena, arena_bytes, NULL, 0,
                        mz_kernels, NULL);
}

static int described(mz_status status, const mz_tensor *tensor, mz_library_tensor *result)
{
    if (status == MZ_OK) {
        result->data = tensor->data;
        result->bytes = tensor->bytes;
    }
    return (int)status;
}

EXPORTED int mz_library_input(const mz_context *context, uint32_t index, mz_library_tensor *result)
{
    mz_tensor tensor;
    const mz_status status = mz_input(context, index, &tensor);
    return described(status, &tensor, result);
}

EXPORTED int mz_library_output(const mz_context *context, uint32_t index, mz_library_tensor *result)
{
    mz_tensor tensor;
    const mz_status status = mz_output(context, index, &tensor);
    return described(status, &tensor, result);
}

EXPORTED int mz_library_invoke(mz_context *context)
{
    return (int)mz_invoke(context);
}

EXPORTED int mz_library_reset(mz_context *context)
{
    return (int)mz_reset_states(context);
}

EXPORTED const char *mz_library_status_text(int status)
{
    return mz_status_text((mz_status)status);
}
