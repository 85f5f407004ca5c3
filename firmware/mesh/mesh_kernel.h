/* Operators on kernels of Mizzen's C runtime: those that TOSA has no form of. One is open at a
 * time; its container's tensors lie in an arena, which is part of the element's scratch memory. */
#ifndef MESH_KERNEL_H
#define MESH_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Make an operator ready; container and arena begin at multiples of 16 bytes. Return whether that
 * could be: where not, mesh_fault has been called. */
int mesh_kernel_open(const uint8_t *container, uint32_t container_bytes, uint8_t *arena,
                     uint32_t arena_bytes);

/* Dense elements of an input, to be filled before it runs. */
uint8_t *mesh_kernel_input(uint32_t index);

/* Compute; return whether that could be. */
int mesh_kernel_run(void);

/* Dense elements of an output. */
uint8_t *mesh_kernel_output(uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
