#include "mesh_kernel.h"

#include "mesh_port.h"
#include "mizzen.h"
#include "mizzen_npu.h"

extern const mz_kernel mz_kernels[];

static mz_context context;

static int held(mz_status status)
{
    if (status != MZ_OK) {
        mesh_fault((uint32_t)status);
    }
    return status == MZ_OK;
}

int mesh_kernel_open(const uint8_t *container, uint32_t container_bytes, uint8_t *arena,
                     uint32_t arena_bytes)
{
    return held(mz_open(&context, container, container_bytes, arena, arena_bytes, 0, 0u,
                        mz_kernels, 0));
}

uint8_t *mesh_kernel_input(uint32_t index)
{
    mz_tensor tensor;
    return held(mz_input(&context, index, &tensor)) ? tensor.data : 0;
}

int mesh_kernel_run(void)
{
    return held(mz_invoke(&context));
}

uint8_t *mesh_kernel_output(uint32_t index)
{
    mz_tensor tensor;
    return held(mz_output(&context, index, &tensor)) ? tensor.data : 0;
}

/* Containers of single operators have nothing for an NPU. */
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
    return MZ_ERROR_OTHER_NPU;
}
